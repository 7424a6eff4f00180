package suite

import (
	"regexp"
	"strconv"
)

// small are tasks of one call, of few calls, and of many with little in each.
func small() []*Task {
	return []*Task{
		openingHours(), addition(), onCall(), urgentTickets(), lastSubject(),
		settingsDrift(), sameTimeout(), onCallCity(), newProject(), hotfixBranch(), oldestTicket(), watchlist(),
		largestSum(), openItems(), lastTouched(),
	}
}

// The number that the calculator puts at the end of a sentence, and a time after "to".
var (
	sum     = regexp.MustCompile(`is (-?[\d.]+)\.`)
	closing = regexp.MustCompile(`to (\d\d:\d\d)`)
)

// firstGroup returns the match of the pattern's group, "" for none.
func firstGroup(pattern *regexp.Regexp, text string) string {
	if m := pattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

func openingHours() *Task {
	return &Task{
		Name: "opening-hours", Kind: OneCall, Upstreams: []string{"filesystem"},
		Prompt:  "When does the shop close on weekdays? It is in {files}/hours.txt. Answer with the time alone, as HH:MM.",
		Want:    func(*World) string { return "17:45" },
		Needs:   []string{"filesystem.read_text_file"},
		Queries: [][]string{{"read a text file"}},
		Direct: func(m *ScriptRun) string {
			return firstGroup(closing, m.Call("filesystem.read_text_file", map[string]any{"path": m.Files() + "/hours.txt"}))
		},
		Programs: []Program{{File: "opening-hours.py", Needs: []string{"filesystem.read_text_file"}}},
		Answer:   func(_ *ScriptRun, output string) string { return firstGroup(closing, output) },
	}
}

func addition() *Task {
	return &Task{
		Name: "addition", Kind: OneCall, Upstreams: []string{"everything"},
		Prompt:  "What is 48213.75 plus 1906.5? Do not work it out yourself, have the test server add the two. Answer with the number alone.",
		Want:    func(*World) string { return "50120.25" },
		Needs:   []string{"everything.get-sum"},
		Queries: [][]string{{"add two numbers"}, {"test server sum of two numbers"}},
		Direct: func(m *ScriptRun) string {
			return firstGroup(sum, m.Call("everything.get-sum", map[string]any{"a": 48213.75, "b": 1906.5}))
		},
		Programs: []Program{{File: "addition.py", Needs: []string{"everything.get_sum"}}},
		Answer:   func(_ *ScriptRun, output string) string { return firstGroup(sum, output) },
	}
}

func onCall() *Task {
	const service = "svc-pay-06"
	return &Task{
		Name: "on-call", Kind: OneCall, Upstreams: []string{"memory"},
		Prompt:  "Who is on call for " + service + "? It is in the knowledge graph. Answer with the name alone.",
		Want:    func(w *World) string { return w.service(service).OnCall },
		Needs:   []string{"memory.open_nodes"},
		Queries: [][]string{{"open an entity of the knowledge graph"}, {"open nodes of the knowledge graph by name"}},
		Direct: func(m *ScriptRun) string {
			return m.openNode(service).to(service, "on_call")
		},
		Programs: []Program{{File: "on-call.py", Needs: []string{"memory.open_nodes"}}},
		Answer:   func(m *ScriptRun, output string) string { return graphIn(m, output).to(service, "on_call") },
	}
}

func urgentTickets() *Task {
	return &Task{
		Name: "urgent-tickets", Kind: OneCall, Upstreams: []string{"sqlite"},
		Prompt: "How many tickets are open and urgent? The shop's database has a table tickets, with columns status and priority. Answer with the number alone.",
		Want: func(w *World) string {
			return strconv.Itoa(len(w.tickets(func(t Ticket) bool { return t.Status == "open" && t.Priority == "urgent" })))
		},
		Needs:   []string{"sqlite.query"},
		Queries: [][]string{{"run a SQL query"}, {"sqlite: read-only SQL query"}},
		Direct: func(m *ScriptRun) string {
			return countResult(m, m.Call("sqlite.query", map[string]any{"sql": "SELECT COUNT(*) AS n FROM tickets WHERE status = 'open' AND priority = 'urgent'"}))
		},
		Programs: []Program{{File: "urgent-tickets.py", Needs: []string{"sqlite.query"}}},
		Answer:   countResult,
	}
}

// countResult returns the result of COUNT(*) AS n.
func countResult(m *ScriptRun, rows string) string {
	for _, row := range Decode[[]struct{ N int }](m, rows) {
		return strconv.Itoa(row.N)
	}
	return ""
}

func lastSubject() *Task {
	return &Task{
		Name: "last-subject", Kind: OneCall, Upstreams: []string{"git"},
		Prompt:  "What is the subject of the last commit in the repository {repo}? Answer with the subject alone.",
		Want:    func(w *World) string { return w.Commits[len(w.Commits)-1].Subject },
		Needs:   []string{"git.git_log"},
		Queries: [][]string{{"git log"}, {"git view commit history"}},
		Direct: func(m *ScriptRun) string {
			return m.log(map[string]any{"path": m.Repo(), "maxCount": 1, "oneline": true})[0].Subject
		},
		Programs: []Program{{File: "last-subject.py", Needs: []string{"git.git_log"}}},
	}
}

func (w *World) service(name string) Service {
	for _, s := range w.Services {
		if s.Name == name {
			return s
		}
	}
	return Service{}
}

func (w *World) person(name string) Person {
	for _, p := range w.People {
		if p.Name == name {
			return p
		}
	}
	return Person{}
}

func (w *World) tickets(which func(Ticket) bool) (some []Ticket) {
	for _, t := range w.Tickets {
		if which(t) {
			some = append(some, t)
		}
	}
	return some
}

// lastCommit is the last one that changed a file.
func (w *World) lastCommit(file string) (last Commit) {
	for _, c := range w.Commits {
		if c.File == file {
			last = c
		}
	}
	return last
}

// openNode opens an entity.
func (m *ScriptRun) openNode(name string) graph {
	return graphIn(m, m.Call("memory.open_nodes", map[string]any{"names": []string{name}}))
}

// to is where a relation leads.
func (g graph) to(from, relation string) string {
	for _, r := range g.Relations {
		if r.From == from && r.RelationType == relation {
			return r.To
		}
	}
	return ""
}

// commit is what the git server says of one, in whichever tool.
type commit struct {
	ShortHash, Author, Subject string
	Timestamp                  int
}

// byAuthor counts commits, or lines of them.
func byAuthor(list []commit) totals {
	return tally(list, func(c commit) (string, int) { return c.Author, 1 })
}

// log asks for commits, of which there is one at least.
func (m *ScriptRun) log(args map[string]any) []commit {
	return m.commits(m.Call("git.git_log", args))
}

func (m *ScriptRun) commits(text string) []commit {
	commits := Decode[struct{ Commits []commit }](m, text).Commits
	if len(commits) == 0 {
		m.Fail("no commits: %.100s", text)
	}
	return commits
}
