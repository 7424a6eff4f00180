package suite

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sallyport/bench/tokencount"
)

// muchData are tasks that read much and say little.
func muchData() []*Task {
	return []*Task{ticketsByAgent(), commitsByAuthor(), heaviestProducts(), logErrors(), slowestRequests(), loadOrders()}
}

// ticketsByAgent is one that the database works out: code has nothing to win but definitions.
func ticketsByAgent() *Task {
	return &Task{
		Name: "tickets-by-agent", Kind: MuchData, Upstreams: []string{"sqlite"},
		Prompt: "Which three agents have the most open tickets in the shop's database? Only tickets whose status is open count. Answer as \"AGENT COUNT, AGENT COUNT, AGENT COUNT\", most first, ties in alphabetical order.",
		Want: func(w *World) string {
			return tally(w.Tickets, func(t Ticket) (string, int) {
				if t.Status != "open" {
					return "", 0
				}
				return t.Assignee, 1
			}).format(3, strconv.Itoa)
		},
		Needs:   []string{"sqlite.list-tables", "sqlite.query"},
		Queries: [][]string{{"run a SQL query", "list the tables of the database"}, {"sqlite: read-only SQL query", "sqlite list tables"}, {"sqlite query", "sqlite list tables"}},
		Direct: func(m *ScriptRun) string {
			m.Call("sqlite.list-tables", map[string]any{})
			return agents(m, m.All(query("SELECT assignee, COUNT(*) AS n FROM tickets WHERE status = 'open' GROUP BY assignee ORDER BY n DESC, assignee LIMIT 3"))[0])
		},
		Programs: []Program{
			{File: "tickets-by-agent-look.py", Needs: []string{"sqlite.list_tables"}},
			{File: "tickets-by-agent.py", Needs: []string{"sqlite.query"}},
		},
		Answer: agents,
	}
}

// agents are rows of an agent and a number, as they are to be said.
func agents(m *ScriptRun, rows string) string {
	var words []string
	for _, row := range Decode[[]struct {
		Assignee string
		N        int
	}](m, rows) {
		words = append(words, row.Assignee+" "+strconv.Itoa(row.N))
	}
	return strings.Join(words, ", ")
}

// commitsByAuthor reads a whole history. Direct calls have the tool that says least of each commit.
func commitsByAuthor() *Task {
	return &Task{
		Name: "commits-by-author", Kind: MuchData, Upstreams: []string{"git"},
		Prompt: "How many commits has each author made on main in {repo}? There are fewer than 100 in all. Answer as \"NAME COUNT, NAME COUNT, ...\", most first, ties in alphabetical order.",
		Want: func(w *World) string {
			return tally(w.Commits, func(c Commit) (string, int) { return c.Author, 1 }).format(0, strconv.Itoa)
		},
		Needs:         []string{"git.git_changelog_analyze"},
		Queries:       [][]string{{"commit history of a repository"}, {"git log: view commit history"}},
		SearchQueries: [][]string{{"commit history of a repository"}, {"git history context: commits and tags"}},
		Direct: func(m *ScriptRun) string {
			text := m.Call("git.git_changelog_analyze", map[string]any{"path": m.Repo(), "reviewTypes": []string{"features"}, "maxCommits": 100})
			return byAuthor(Decode[struct{ GitContext struct{ Commits []commit } }](m, text).GitContext.Commits).format(0, strconv.Itoa)
		},
		Programs: []Program{{File: "commits-by-author.py", Needs: []string{"git.git_log"}}},
	}
}

// heaviestProducts guesses wrong in code: it takes an error, a look and a second try.
func heaviestProducts() *Task {
	heaviest := func(list []Product) string {
		list = slices.DeleteFunc(slices.Clone(list), func(p Product) bool { return p.Category != "lighting" })
		slices.SortFunc(list, func(a, b Product) int {
			return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.SKU, b.SKU))
		})
		var names []string
		for _, p := range list[:min(10, len(list))] {
			names = append(names, p.SKU)
		}
		return strings.Join(names, ", ")
	}
	return &Task{
		Name: "heaviest-products", Kind: MuchData, Upstreams: []string{"filesystem"},
		Prompt:  "Which ten products of the category lighting in {files}/products.json weigh most? Answer with their SKUs, the heaviest first, ties in alphabetical order, separated by a comma and a space.",
		Want:    func(w *World) string { return heaviest(w.Products) },
		Needs:   []string{"filesystem.read_text_file"},
		Queries: [][]string{{"read a text file"}, {"filesystem: read text file"}},
		Direct: func(m *ScriptRun) string {
			text := m.Call("filesystem.read_text_file", map[string]any{"path": m.Files() + "/products.json"})
			return heaviest(productsIn(m, text))
		},
		Programs: []Program{
			{File: "heaviest-products-guess.py", Fails: "KeyError: 'weight'", Needs: []string{"filesystem.read_text_file"}},
			{File: "heaviest-products-look.py"},
			{File: "heaviest-products.py"},
		},
	}
}

const someLogs = "the five log files {files}/logs/app-1.log to app-5.log (each line: time, level, request id, path, status and duration in ms, separated by spaces)"

// readQueries find what reads files, one or many.
func readQueries() [][]string {
	return [][]string{{"read several text files"}, {"filesystem: read text file, read multiple files"}, {"filesystem read text file", "filesystem read multiple files"}}
}

func readLogs(m *ScriptRun) tokencount.Call { return readFiles(m, 5, "logs/app-%d.log") }

func errorsByPath(list []Request) totals {
	return tally(list, func(r Request) (string, int) {
		if r.Status < 500 {
			return "", 0
		}
		return r.Path, 1
	})
}

func logErrors() *Task {
	return &Task{
		Name: "log-errors", Kind: MuchData, Upstreams: []string{"filesystem"},
		Prompt:  "In " + someLogs + ", how many requests of each path ended with a status of 500 or more? Answer as \"PATH COUNT, PATH COUNT, ...\", most first, ties in alphabetical order.",
		Want:    func(w *World) string { return errorsByPath(w.Requests).format(0, strconv.Itoa) },
		Needs:   []string{"filesystem.read_multiple_files"},
		Queries: readQueries(),
		Direct: func(m *ScriptRun) string {
			return errorsByPath(requestsIn(m, m.All(readLogs(m))[0])).format(0, strconv.Itoa)
		},
		Programs: []Program{{File: "log-errors.py", Needs: []string{"filesystem.read_multiple_files"}}},
	}
}

func slowestRequests() *Task {
	slowest := func(list []Request) string {
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b Request) int { return cmp.Compare(b.Millis, a.Millis) })
		var ids []string
		for _, r := range list[:min(5, len(list))] {
			ids = append(ids, r.ID)
		}
		return strings.Join(ids, ", ")
	}
	return &Task{
		Name: "slowest-requests", Kind: MuchData, Upstreams: []string{"filesystem"},
		Prompt:   "Which five requests in " + someLogs + " took longest? Answer with their request ids, the slowest first, of equally slow ones the earlier first, separated by a comma and a space.",
		Want:     func(w *World) string { return slowest(w.Requests) },
		Needs:    []string{"filesystem.read_multiple_files"},
		Queries:  readQueries(),
		Direct:   func(m *ScriptRun) string { return slowest(requestsIn(m, m.All(readLogs(m))[0])) },
		Programs: []Program{{File: "slowest-requests.ts", Needs: []string{"filesystem.read_text_file"}}},
	}
}
