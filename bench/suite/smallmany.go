package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sallyport/bench/tokencount"
)

func largestSum() *Task {
	return &Task{
		Name: "largest-sum", Kind: ManyCalls, Upstreams: []string{"everything", "filesystem"},
		Prompt: "{files}/pairs.csv has a pair of numbers in each line after the first. Have the test server add up each pair. Which sum is the largest? Answer with the number alone.",
		Want: func(w *World) string {
			largest := 0
			for _, p := range w.Pairs {
				largest = max(largest, p[0]+p[1])
			}
			return strconv.Itoa(largest)
		},
		Needs:   []string{"filesystem.read_text_file", "everything.get-sum"},
		Queries: [][]string{{"read a text file", "add two numbers"}, {"filesystem read text file", "test server sum of two numbers"}},
		Direct:  addAll,
		// What the sum looks like is not in its signature, so a pair is tried first.
		Programs: []Program{
			{File: "largest-sum-look.ts", Needs: []string{"filesystem.read_text_file", "everything.get_sum"}},
			{File: "largest-sum.ts", Needs: []string{"filesystem.read_text_file", "everything.get_sum"}},
		},
	}
}

func addAll(m *ScriptRun) string {
	var calls []tokencount.Call
	for _, line := range strings.Fields(m.Call("filesystem.read_text_file", map[string]any{"path": m.Files() + "/pairs.csv"}))[1:] {
		a, b, _ := strings.Cut(line, ",")
		calls = append(calls, Call("everything.get-sum", map[string]any{"a": number(m, a), "b": number(m, b)}))
	}
	largest := 0
	for _, text := range m.All(calls...) {
		largest = max(largest, number(m, firstGroup(sum, text)))
	}
	return strconv.Itoa(largest)
}

func openItems() *Task {
	return &Task{
		Name: "open-items", Kind: ManyCalls, Upstreams: []string{"filesystem"},
		Prompt: "The notes in {files}/notes have items like \"- [ ] call legal\" that are open, and \"- [x] call legal\" that are done. How many are open in all, and which note has the most? Answer as \"COUNT FILE\", with the first by name where several have as many.",
		Want: func(w *World) string {
			open := map[string]int{}
			for _, n := range w.Notes {
				open[n.Name+".md"] = len(n.Todo)
			}
			return mostOpen(open)
		},
		Needs:         []string{"filesystem.list_directory", "filesystem.read_multiple_files"},
		Queries:       [][]string{{"list a directory", "read a text file"}, {"filesystem list directory", "filesystem read text file"}},
		SearchQueries: [][]string{{"list a directory", "read several files"}, {"filesystem list directory", "filesystem read multiple files"}},
		Direct: func(m *ScriptRun) string {
			var paths []string
			for line := range strings.Lines(m.Call("filesystem.list_directory", map[string]any{"path": m.Files() + "/notes"})) {
				paths = append(paths, m.Files()+"/notes/"+strings.TrimSpace(strings.TrimPrefix(line, "[FILE] ")))
			}
			open := map[string]int{}
			for text := range strings.SplitSeq(m.Call("filesystem.read_multiple_files", map[string]any{"paths": paths}), "\n---\n") {
				path, items, _ := strings.Cut(text, ":\n")
				open[strings.TrimPrefix(path, m.Files()+"/notes/")] = strings.Count(items, "- [ ]")
			}
			return mostOpen(open)
		},
		Programs: []Program{
			{File: "open-items-look.py", Needs: []string{"filesystem.list_directory"}},
			{File: "open-items.py", Needs: []string{"filesystem.list_directory", "filesystem.read_text_file"}},
		},
	}
}

func mostOpen(open totals) string {
	all := 0
	for _, n := range open {
		all += n
	}
	return fmt.Sprint(all, " ", open.sortedNames()[0])
}

// lastTouched takes three programs: the first guesses what a listing and a commit look like.
func lastTouched() *Task {
	return &Task{
		Name: "last-touched", Kind: ManyCalls, Upstreams: []string{"filesystem", "git"},
		Prompt: "Which file in {repo}/src has gone longest without a commit, and who made its last one? Answer as \"FILE AUTHOR\", the file without its folder.",
		Want: func(w *World) string {
			var last []fileCommit
			for _, c := range w.Commits {
				if !slices.ContainsFunc(last, func(t fileCommit) bool { return "src/"+t.file == c.File }) {
					l := w.lastCommit(c.File)
					last = append(last, fileCommit{strings.TrimPrefix(c.File, "src/"), l.Author, int(l.At.Unix())})
				}
			}
			return longest(last)
		},
		Needs:   []string{"filesystem.list_directory", "git.git_log"},
		Queries: [][]string{{"list a directory", "git log"}, {"filesystem list directory", "git view commit history"}},
		Direct: func(m *ScriptRun) string {
			var last []fileCommit
			var calls []tokencount.Call
			for line := range strings.Lines(m.Call("filesystem.list_directory", map[string]any{"path": m.Repo() + "/src"})) {
				file := strings.TrimSpace(strings.TrimPrefix(line, "[FILE] "))
				last = append(last, fileCommit{file: file})
				calls = append(calls, Call("git.git_log", map[string]any{"path": m.Repo(), "filePath": "src/" + file, "maxCount": 1}))
			}
			for i, text := range m.All(calls...) {
				c := m.commits(text)[0]
				last[i].author, last[i].at = c.Author, c.Timestamp
			}
			return longest(last)
		},
		Programs: []Program{
			{File: "last-touched-guess.ts", Fails: "reading 'author'", Needs: []string{"filesystem.list_directory", "git.git_log"}},
			{File: "last-touched-look.ts", Needs: []string{"filesystem.list_directory", "git.git_log"}},
			{File: "last-touched.ts", Needs: []string{"filesystem.list_directory", "git.git_log"}},
		},
	}
}

// fileCommit is a file with its last commit.
type fileCommit struct {
	file, author string
	at           int
}

// longest is the file with the oldest last commit.
func longest(files []fileCommit) string {
	oldest := slices.MinFunc(files, func(a, b fileCommit) int { return cmp.Compare(a.at, b.at) })
	return oldest.file + " " + oldest.author
}
