package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

func settingsDrift() *Task {
	return &Task{
		Name: "settings-drift", Kind: FewCalls, Upstreams: []string{"filesystem"},
		Prompt:        "In {files}/config the service pay has one file of settings for production and one for staging. Which settings differ? Answer with their names in alphabetical order, separated by a comma and a space.",
		Want:          func(*World) string { return "pool, retries, sandbox, trace" },
		Needs:         []string{"filesystem.list_directory", "filesystem.read_multiple_files"},
		Queries:       [][]string{{"list a directory", "read a text file"}, {"filesystem list directory", "filesystem read text file"}},
		SearchQueries: [][]string{{"list a directory", "read several files"}, {"filesystem list directory", "filesystem read multiple files"}},
		Direct: func(m *ScriptRun) string {
			var paths []string
			for line := range strings.SplitSeq(m.Call("filesystem.list_directory", map[string]any{"path": m.Files() + "/config"}), "\n") {
				if name, is := strings.CutPrefix(line, "[FILE] pay-"); is {
					paths = append(paths, m.Files()+"/config/pay-"+name)
				}
			}
			one, two, _ := strings.Cut(m.Call("filesystem.read_multiple_files", map[string]any{"paths": paths}), "\n---\n")
			return drift(m, one, two)
		},
		Programs: []Program{
			{File: "settings-drift-look.py", Needs: []string{"filesystem.list_directory"}},
			{File: "settings-drift.py", Needs: []string{"filesystem.read_text_file"}},
		},
	}
}

// drift names what the objects in two texts do not have alike, or only one of them has.
func drift(m *ScriptRun, one, two string) string {
	a, b := Decode[map[string]any](m, objectText(one)), Decode[map[string]any](m, objectText(two))
	all := maps.Clone(a)
	maps.Copy(all, b)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return a[name] == b[name] })
	return strings.Join(names, ", ")
}

// objectText returns the JSON object in a text.
func objectText(text string) string {
	from, to := strings.Index(text, "{"), strings.LastIndex(text, "}")
	if from < 0 || to < from {
		return ""
	}
	return text[from : to+1]
}

func sameTimeout() *Task {
	return &Task{
		Name: "same-timeout", Kind: FewCalls, Upstreams: []string{"filesystem"},
		Prompt: "Set timeout_ms in {files}/config/worker.json to what it is in {files}/config/service.json, and change nothing else. Answer with the new value alone.",
		Want:   func(*World) string { return "2500" },
		Done: func(w *World) error {
			return errors.Join(
				w.checkFile("config/worker.json", strings.TrimSpace(strings.Replace(settings["worker.json"], "900", "2500", 1))),
				w.checkFile("config/service.json", strings.TrimSpace(settings["service.json"])))
		},
		Needs:         []string{"filesystem.read_multiple_files", "filesystem.edit_file"},
		Queries:       [][]string{{"read a text file", "edit a file"}, {"filesystem write file"}, {"filesystem read text file"}},
		SearchQueries: [][]string{{"read several files", "edit a file"}, {"filesystem read multiple files", "filesystem edit file"}},
		Direct: func(m *ScriptRun) string {
			texts := m.Call("filesystem.read_multiple_files", map[string]any{"paths": []string{m.Files() + "/config/worker.json", m.Files() + "/config/service.json"}})
			old, is, _ := strings.Cut(texts, "\n---\n")
			value := timeout(m, is)
			m.Call("filesystem.edit_file", map[string]any{"path": m.Files() + "/config/worker.json", "edits": []map[string]string{
				{"oldText": `"timeout_ms": ` + timeout(m, old), "newText": `"timeout_ms": ` + value},
			}})
			return value
		},
		Programs: []Program{{File: "same-timeout.py", Needs: []string{"filesystem.read_text_file", "filesystem.write_file"}}},
	}
}

func timeout(m *ScriptRun, text string) string {
	return strconv.Itoa(Decode[struct {
		Timeout int `json:"timeout_ms"`
	}](m, objectText(text)).Timeout)
}

func onCallCity() *Task {
	const service = "svc-cart-16"
	return &Task{
		Name: "on-call-city", Kind: FewCalls, Upstreams: []string{"memory"},
		Prompt:  "In which city does the person live who is on call for " + service + "? It is in the knowledge graph. Answer with the city alone.",
		Want:    func(w *World) string { return w.person(w.service(service).OnCall).City },
		Needs:   []string{"memory.open_nodes"},
		Queries: [][]string{{"open an entity of the knowledge graph"}, {"open nodes of the knowledge graph by name"}},
		Direct: func(m *ScriptRun) string {
			person := m.openNode(service).to(service, "on_call")
			return m.openNode(person).observations("lives in ")[person]
		},
		// It follows the service's relations without knowing what they are called.
		Programs: []Program{{File: "on-call-city.py", Needs: []string{"memory.open_nodes"}}},
		Answer: func(m *ScriptRun, output string) string {
			g := graphIn(m, output)
			return g.observations("lives in ")[g.to(service, "on_call")]
		},
	}
}

func newProject() *Task {
	const service = "svc-mail-10"
	entity := map[string]any{"name": "Lighthouse", "entityType": "project", "observations": []string{"starts 2027-02-01"}}
	return &Task{
		Name: "new-project", Kind: FewCalls, Upstreams: []string{"memory"},
		Prompt: "Note a new project in the knowledge graph: an entity Lighthouse of type project, with the observation \"starts 2027-02-01\", and a relation led_by from it to whoever is on call for " + service + ". Answer with that person's name alone.",
		Want:   func(w *World) string { return w.service(service).OnCall },
		Done: func(w *World) error {
			return errors.Join(w.checkMemory("entity", entity), w.checkMemory("relation", ledBy(w.service(service).OnCall)))
		},
		Needs:   []string{"memory.open_nodes", "memory.create_entities", "memory.create_relations"},
		Queries: [][]string{{"open an entity of the knowledge graph", "create entities and relations"}, {"open nodes of the knowledge graph by name", "create entities in the knowledge graph", "create relations in the knowledge graph"}},
		Direct: func(m *ScriptRun) string {
			person := m.openNode(service).to(service, "on_call")
			m.All(Call("memory.create_entities", map[string]any{"entities": []any{entity}}),
				Call("memory.create_relations", map[string]any{"relations": []any{ledBy(person)}}))
			return person
		},
		Programs: []Program{
			{File: "new-project-look.py", Needs: []string{"memory.open_nodes"}},
			{File: "new-project.py", Needs: []string{"memory.create_entities", "memory.create_relations"}},
		},
	}
}

func ledBy(person string) map[string]any {
	return map[string]any{"from": "Lighthouse", "relationType": "led_by", "to": person}
}

// checkMemory looks up objects of a type in the file of the memory server, which has one per line.
func (w *World) checkMemory(kind string, objects ...map[string]any) error {
	data, err := os.ReadFile(w.Memory())
	if err != nil {
		return fmt.Errorf("read memory: %w", err)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		lines[canonical([]byte(line))] = true
	}
	var missing []error
	for _, object := range objects {
		object = maps.Clone(object)
		object["type"] = kind
		want, err := json.Marshal(object)
		if err != nil || !lines[canonical(want)] {
			missing = append(missing, errors.Join(err, fmt.Errorf("memory has no %s", want)))
		}
	}
	return errors.Join(missing...)
}

// canonical is JSON with sorted keys, "" if it is none.
func canonical(data []byte) string {
	var value any
	if json.Unmarshal(data, &value) != nil {
		return ""
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}

func hotfixBranch() *Task {
	const branch, file = "hotfix-pay", "src/pay.txt"
	return &Task{
		Name: "hotfix-branch", Kind: FewCalls, Upstreams: []string{"git"},
		Prompt: "Make a branch " + branch + " in the repository {repo}, at the last commit that changed " + file + ", and stay on main. Answer with that commit's subject alone.",
		Want:   func(w *World) string { return w.lastCommit(file).Subject },
		Done: func(w *World) error {
			return errors.Join(w.checkBranch(branch, w.lastCommit(file)), w.checkHead("main"))
		},
		Needs:   []string{"git.git_log", "git.git_branch"},
		Queries: [][]string{{"git log", "create a branch"}, {"git view commit history", "git create branch"}},
		Direct: func(m *ScriptRun) string {
			last := m.log(map[string]any{"path": m.Repo(), "filePath": file, "maxCount": 1, "oneline": true})[0]
			m.Call("git.git_branch", map[string]any{"path": m.Repo(), "mode": "create", "branchName": branch, "startPoint": last.ShortHash})
			return last.Subject
		},
		Programs: []Program{
			{File: "hotfix-branch.py", Needs: []string{"git.git_log", "git.git_branch"}},
		},
	}
}

// checkBranch checks that a branch is at a commit, which is found by its place on main.
func (w *World) checkBranch(branch string, at Commit) error {
	hashes, err := w.git("", "rev-list", "--reverse", "main")
	if err != nil {
		return err
	}
	out, err := w.git("", "rev-parse", "refs/heads/"+branch)
	if want := strings.Fields(hashes)[slices.Index(w.Commits, at)]; err == nil && out != want {
		err = fmt.Errorf("%s is at %s, not at %s", branch, out, want)
	}
	return err
}

// checkHead checks which branch is checked out.
func (w *World) checkHead(branch string) error {
	out, err := w.git("", "symbolic-ref", "HEAD")
	if err == nil && out != "refs/heads/"+branch {
		err = fmt.Errorf("%s is checked out, not %s", out, branch)
	}
	return err
}

// oldestTicket begins with the same wrong guess in either mode.
func oldestTicket() *Task {
	return &Task{
		Name: "oldest-ticket", Kind: FewCalls, Upstreams: []string{"sqlite"},
		Prompt: "Which urgent ticket that is still open is the oldest in the shop's database? Answer with its number alone, the lowest where several are of the same day.",
		Want: func(w *World) string {
			open := w.tickets(func(t Ticket) bool { return t.Status == "open" && t.Priority == "urgent" })
			slices.SortStableFunc(open, func(a, b Ticket) int { return a.Opened.Compare(b.Opened) })
			return strconv.Itoa(open[0].ID)
		},
		Needs:   []string{"sqlite.query", "sqlite.list-tables"},
		Queries: [][]string{{"run a SQL query", "list the tables of a database"}, {"sqlite: read-only SQL query", "sqlite list tables"}},
		Direct: func(m *ScriptRun) string {
			const sql = "SELECT id FROM tickets WHERE status = 'open' AND priority = 'urgent' ORDER BY %s, id LIMIT 1"
			if r := m.Turn(query(fmt.Sprintf(sql, "created_at")))[0]; !r.Error {
				m.Fail("a guessed column is there: %s", r.Text)
			}
			m.Call("sqlite.list-tables", map[string]any{})
			return firstID(m, m.All(query(fmt.Sprintf(sql, "opened")))[0])
		},
		Programs: []Program{
			{File: "oldest-ticket-guess.py", Fails: "no such column: created_at", Needs: []string{"sqlite.query"}},
			{File: "oldest-ticket-look.py", Needs: []string{"sqlite.list_tables"}},
			{File: "oldest-ticket.py", Needs: []string{"sqlite.query"}},
		},
		Answer: firstID,
	}
}

func firstID(m *ScriptRun, rows string) string {
	for _, row := range Decode[[]struct{ ID int }](m, rows) {
		return strconv.Itoa(row.ID)
	}
	return ""
}

func watchlist() *Task {
	return &Task{
		Name: "watchlist", Kind: FewCalls, Upstreams: []string{"sqlite"},
		Prompt: "In the shop's database, make a table watchlist with the columns customer_id and tickets, and fill it with the customers who have at least two open tickets of priority high or urgent, and how many they have. Answer with the number of its rows alone.",
		Want:   func(w *World) string { return strconv.Itoa(len(w.watchlistRows())) },
		Done: func(w *World) error {
			return w.checkRows("SELECT customer_id || ' ' || tickets FROM watchlist ORDER BY customer_id", w.watchlistRows())
		},
		Needs:   []string{"sqlite.list-tables", "sqlite.transaction"},
		Queries: [][]string{{"list the tables of a database", "run several SQL statements"}, {"execute SQL statements in a transaction"}, {"sqlite list tables"}},
		Direct: func(m *ScriptRun) string {
			m.Call("sqlite.list-tables", map[string]any{})
			text := m.Call("sqlite.transaction", map[string]any{"statements": []string{
				"CREATE TABLE watchlist (customer_id INTEGER PRIMARY KEY, tickets INTEGER)",
				"INSERT INTO watchlist SELECT customer_id, COUNT(*) FROM tickets WHERE status = 'open' AND priority IN ('high', 'urgent') GROUP BY customer_id HAVING COUNT(*) >= 2",
			}})
			return changes(m, text)
		},
		Programs: []Program{
			{File: "watchlist-look.py", Needs: []string{"sqlite.list_tables"}},
			{File: "watchlist.py", Needs: []string{"sqlite.execute"}},
		},
		Answer: func(m *ScriptRun, output string) string {
			return strconv.Itoa(Decode[struct{ Changes int }](m, output).Changes)
		},
	}
}

// changes is how many rows the last statement of a transaction wrote.
func changes(m *ScriptRun, text string) string {
	results := Decode[struct{ Results []struct{ Changes int } }](m, text).Results
	if len(results) == 0 {
		return ""
	}
	return strconv.Itoa(results[len(results)-1].Changes)
}

// watchlistRows returns the expected rows of the watchlist, "CUSTOMER TICKETS".
func (w *World) watchlistRows() (rows []string) {
	count := tally(w.Tickets, func(t Ticket) (string, int) {
		if t.Status != "open" || t.Priority != "high" && t.Priority != "urgent" {
			return "", 0
		}
		return strconv.Itoa(t.Customer), 1
	})
	for _, customer := range slices.Sorted(maps.Keys(count)) {
		if count[customer] >= 2 {
			rows = append(rows, customer+" "+strconv.Itoa(count[customer]))
		}
	}
	return rows
}
