package suite

import (
	"strings"
)

// small are tasks of one call and of few.
func small() []*Task {
	return []*Task{
		{
			Name: "opening-hours", Kind: OneCall, Upstreams: []string{"filesystem"},
			Prompt:  "When does the shop close on weekdays? It is in {files}/hours.txt. Answer with the time alone, as HH:MM.",
			Want:    func(*World) string { return "17:45" },
			Needs:   []string{"filesystem.read_text_file"},
			Queries: [][]string{{"read a text file"}},
			Direct: func(m *Mind) string {
				text := m.Call("filesystem.read_text_file", map[string]any{"path": m.Files() + "/hours.txt"})
				_, after, _ := strings.Cut(text, " to ")
				return strings.TrimSpace(after[:5])
			},
			Programs: []Program{{File: "opening-hours.py", Needs: []string{"filesystem.read_text_file"}}},
			Answer: func(output string) string {
				_, after, _ := strings.Cut(output, " to ")
				return strings.TrimSpace(after[:5])
			},
		},
	}
}
