package suite

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sallyport/bench/tokencount"
)

// manyCalls are tasks with a loop. Direct calls make all rounds of it in one turn.
func manyCalls() []*Task { return []*Task{blameAuthors(), serviceCards()} }

// blameAuthors calls once for each file.
func blameAuthors() *Task {
	answer := func(lines map[string]totals) string {
		var words []string
		for _, file := range slices.Sorted(maps.Keys(lines)) {
			words = append(words, file+" "+lines[file].format(1, strconv.Itoa))
		}
		return strings.Join(words, ", ")
	}
	return &Task{
		Name: "blame-authors", Kind: ManyCalls, Upstreams: []string{"filesystem", "git"},
		Prompt: "Of each file in {repo}/src, who wrote most of the lines that it has now, by the history of the git repository {repo}? Answer as \"FILE NAME LINES, FILE NAME LINES, ...\" in the order of the file names (without their folder); where two wrote as many, the first in the alphabet.",
		Want: func(w *World) string {
			lines := map[string]totals{}
			for _, c := range w.Commits { // each adds a line
				file := strings.TrimPrefix(c.File, "src/")
				if lines[file] == nil {
					lines[file] = totals{}
				}
				lines[file][c.Author]++
			}
			return answer(lines)
		},
		Needs:   []string{"filesystem.list_directory", "git.git_blame"},
		Queries: [][]string{{"list the files of a folder", "who wrote each line of a file in git"}, {"filesystem list directory", "git blame: last change of each line"}, {"git blame"}},
		Direct: func(m *ScriptRun) string {
			var files []string
			var calls []tokencount.Call
			for entry := range strings.Lines(m.Call("filesystem.list_directory", map[string]any{"path": m.Repo() + "/src"})) {
				file := strings.TrimPrefix(strings.TrimSpace(entry), "[FILE] ")
				files = append(files, file)
				calls = append(calls, Call("git.git_blame", map[string]any{"path": m.Repo(), "filePath": "src/" + file}))
			}
			lines := map[string]totals{}
			for i, text := range m.All(calls...) {
				lines[files[i]] = byAuthor(Decode[struct{ Lines []commit }](m, text).Lines)
			}
			return answer(lines)
		},
		Programs: []Program{
			{File: "blame-authors-look.py", Needs: []string{"filesystem.list_directory"}},
			{File: "blame-authors.py", Needs: []string{"git.git_blame"}},
		},
	}
}

// serviceCards writes a file for each of many, for which there is no tool that writes more than one.
func serviceCards() *Task {
	return &Task{
		Name: "service-cards", Kind: ManyCalls, Upstreams: []string{"filesystem", "memory"},
		Prompt: "For each service in the knowledge graph, write a file {files}/out/service-cards/SERVICE.txt, named after the service, with one line: the name of the person who is on call for it, a comma, a space, and the city where that person lives. Make the folder first. Answer with the number of files.",
		Want:   func(w *World) string { return strconv.Itoa(len(w.Services)) },
		Done: func(w *World) error {
			city := map[string]string{}
			for _, p := range w.People {
				city[p.Name] = p.City
			}
			for _, s := range w.Services {
				if err := w.checkFile("out/service-cards/"+s.Name+".txt", s.OnCall+", "+city[s.OnCall]); err != nil {
					return err
				}
			}
			return nil
		},
		Needs:   []string{"memory.read_graph", "filesystem.create_directory", "filesystem.write_file"},
		Queries: [][]string{{"read the knowledge graph", "create a folder", "write a file"}, {"filesystem create directory"}, {"memory: read the whole graph", "filesystem write file"}},
		Direct: func(m *ScriptRun) string {
			folder := m.Files() + "/out/service-cards"
			texts := m.All(Call("memory.read_graph", map[string]any{}), Call("filesystem.create_directory", map[string]any{"path": folder}))
			g := graphIn(m, texts[0])
			city := g.observations("lives in ")
			var calls []tokencount.Call
			for _, s := range g.services(m) {
				calls = append(calls, Call("filesystem.write_file", map[string]any{
					"path": fmt.Sprintf("%s/%s.txt", folder, s.Name), "content": s.OnCall + ", " + city[s.OnCall] + "\n",
				}))
			}
			return strconv.Itoa(len(m.All(calls...)))
		},
		Programs: []Program{
			{File: "service-cards-look.ts", Needs: []string{"memory.read_graph"}},
			{File: "service-cards.ts", Needs: []string{"memory.read_graph", "filesystem.create_directory", "filesystem.write_file"}},
		},
	}
}
