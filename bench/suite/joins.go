package suite

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/bench/tokencount"
)

// joins are tasks that put together what several calls gave.
func joins() []*Task {
	return []*Task{onCallElsewhere(), errorsAndAuthors(), weightByMonth(), revenueByCity(), ticketsOfBuyers(), latePayers()}
}

const allOrders = "the orders of 2026 ({files}/orders/2026-01.csv to 2026-12.csv, with a header and the columns order_id, date, customer_id, sku, quantity, unit_price)"

// onCallElsewhere is a join of a small graph, which one call reads.
func onCallElsewhere() *Task {
	elsewhere := func(services []Service, teams map[string]string) string {
		var names []string
		for _, s := range services {
			if s.Tier == 1 && s.Team != teams[s.OnCall] {
				names = append(names, s.Name)
			}
		}
		slices.Sort(names)
		return strings.Join(names, ", ")
	}
	return &Task{
		Name: "on-call-elsewhere", Kind: Join, Upstreams: []string{"memory"},
		Prompt: "The knowledge graph has services (each with its tier, the team that owns it and a person on call) and persons (each in a team). Which services of tier 1 have somebody on call who is not in the team that owns the service? Answer with their names in alphabetical order, separated by a comma and a space.",
		Want: func(w *World) string {
			teams := map[string]string{}
			for _, p := range w.People {
				teams[p.Name] = p.Team
			}
			return elsewhere(w.Services, teams)
		},
		Needs:   []string{"memory.read_graph"},
		Queries: [][]string{{"read the knowledge graph"}, {"memory: read the whole graph"}, {"memory read graph"}},
		Direct: func(m *ScriptRun) string {
			g := graphIn(m, m.Call("memory.read_graph", map[string]any{}))
			return elsewhere(g.services(m), g.observations("is in team "))
		},
		Programs: []Program{
			{File: "on-call-elsewhere-look.py", Needs: []string{"memory.read_graph"}},
			{File: "on-call-elsewhere.py"},
		},
	}
}

// graph is what the memory server keeps.
type graph struct {
	Entities []struct {
		Name, EntityType string
		Observations     []string
	}
	Relations []struct{ From, To, RelationType string }
}

func graphIn(m *ScriptRun, text string) graph { return Decode[graph](m, text) }

// observations returns the observation after a prefix, by the name of the entity.
func (g graph) observations(prefix string) map[string]string {
	found := map[string]string{}
	for _, e := range g.Entities {
		for _, text := range e.Observations {
			if after, is := strings.CutPrefix(text, prefix); is {
				found[e.Name] = after
			}
		}
	}
	return found
}

func (g graph) services(m *ScriptRun) []Service {
	onCall, team, tier := map[string]string{}, g.observations("owned by "), g.observations("tier ")
	for _, r := range g.Relations {
		if r.RelationType == "on_call" {
			onCall[r.From] = r.To
		}
	}
	var list []Service
	for _, name := range slices.Sorted(maps.Keys(team)) {
		list = append(list, Service{Name: name, Team: team[name], OnCall: onCall[name], Tier: number(m, tier[name])})
	}
	return list
}

// errorsAndAuthors puts logs and history together; direct calls read all in one turn.
func errorsAndAuthors() *Task {
	paths := []string{"/cart", "/login", "/orders", "/pay", "/search"}
	answer := func(errors totals, author map[string]string) string {
		var words []string
		for _, p := range errors.sortedNames() {
			if author[p] != "" {
				words = append(words, fmt.Sprintf("%s %d %s", p, errors[p], author[p]))
			}
		}
		return strings.Join(words, ", ")
	}
	return &Task{
		Name: "errors-and-authors", Kind: Join, Upstreams: []string{"filesystem", "git"},
		Prompt: "The paths /cart, /login, /orders, /pay and /search are served by src/cart.txt, src/login.txt and so on in the repository {repo}. For each, count the requests with a status of 500 or more in " + someLogs + ", and find who made the last commit to its source file. Answer as \"PATH COUNT AUTHOR, PATH COUNT AUTHOR, ...\", most errors first, ties in alphabetical order.",
		Want: func(w *World) string {
			author := map[string]string{}
			for _, c := range w.Commits {
				author["/"+strings.TrimSuffix(path.Base(c.File), ".txt")] = c.Author
			}
			return answer(errorsByPath(w.Requests), author)
		},
		Needs:   []string{"filesystem.read_multiple_files", "git.git_log"},
		Queries: [][]string{{"read several text files", "commit history of a file"}, {"filesystem: read multiple files at once", "git log: view commit history by file path"}, {"filesystem read multiple files", "git log"}},
		Direct: func(m *ScriptRun) string {
			calls := []tokencount.Call{readLogs(m)}
			for _, p := range paths {
				calls = append(calls, Call("git.git_log", map[string]any{"path": m.Repo(), "filePath": "src" + p + ".txt", "maxCount": 1}))
			}
			texts, author := m.All(calls...), map[string]string{}
			for i, p := range paths {
				author[p] = m.commits(texts[i+1])[0].Author
			}
			return answer(errorsByPath(requestsIn(m, texts[0])), author)
		},
		Programs: []Program{{File: "errors-and-authors.py", Needs: []string{"filesystem.read_multiple_files", "git.git_log"}}},
	}
}

// weightByMonth joins files with a file.
func weightByMonth() *Task {
	answer := func(orders []Order, products []Product) string {
		grams := map[string]int{}
		for _, p := range products {
			grams[p.SKU] = int(p.Weight*1000 + 0.5)
		}
		return tally(orders, func(o Order) (string, int) { return o.Day.Format("2006-01"), o.Quantity * grams[o.SKU] }).
			format(3, func(n int) string { return fmt.Sprintf("%d.%d", n/1000, n%1000/100) })
	}
	return &Task{
		Name: "weight-by-month", Kind: Join, Upstreams: []string{"filesystem"},
		Prompt:  "In which three months was most weight shipped? The orders are " + strings.TrimPrefix(allOrders, "the orders of 2026 ") + "; the weights of the products are in {files}/products.json (a list of objects with sku and weight_kg). Answer as \"YYYY-MM KG, YYYY-MM KG, YYYY-MM KG\", most first, KG with one decimal.",
		Want:    func(w *World) string { return answer(w.Orders, w.Products) },
		Needs:   []string{"filesystem.read_multiple_files"},
		Queries: readQueries(),
		Direct: func(m *ScriptRun) string {
			text := m.All(readOrders(m, "products.json"))[0]
			return answer(ordersIn(m, text), productsIn(m, text))
		},
		Programs: []Program{{File: "weight-by-month.ts", Needs: []string{"filesystem.read_text_file"}}},
	}
}

// joinQueries find what reads files and the database.
func joinQueries() [][]string {
	return [][]string{{"read several text files", "run a SQL query", "list the tables of the database"}, {"filesystem: read multiple files at once", "sqlite: read-only SQL query", "sqlite list tables"}, {"filesystem read multiple files", "sqlite query", "sqlite list tables"}}
}

var joinNeeds = []string{"filesystem.read_multiple_files", "sqlite.list-tables", "sqlite.query"}

// revenueByCity takes two programs: one looks, the other works.
func revenueByCity() *Task {
	answer := func(orders []Order, city map[int]string) string {
		return tally(orders, func(o Order) (string, int) { return city[o.Customer], total(o) }).format(0, Money)
	}
	return &Task{
		Name: "revenue-by-city", Kind: Join, Upstreams: []string{"filesystem", "sqlite"},
		Prompt: "What is the revenue (quantity times unit price) of the orders of 2026 by the city of the customer? Orders are in {files}/orders/2026-01.csv to 2026-12.csv, customers in the shop's database. Answer as \"CITY AMOUNT, CITY AMOUNT, ...\", most first, amounts with two decimals.",
		Want: func(w *World) string {
			city := map[int]string{}
			for _, c := range w.Customers {
				city[c.ID] = c.City
			}
			return answer(w.Orders, city)
		},
		Needs: joinNeeds, Queries: joinQueries(),
		Direct: func(m *ScriptRun) string {
			m.Call("sqlite.list-tables", map[string]any{})
			texts := m.All(query("SELECT city AS key, group_concat(id) AS ids FROM customers GROUP BY city"), readOrders(m))
			return answer(ordersIn(m, texts[1]), idsIn(m, texts[0]))
		},
		Programs: []Program{
			{File: "revenue-by-city-look.py", Needs: []string{"filesystem.read_text_file", "sqlite.list_tables", "sqlite.query"}},
			{File: "revenue-by-city.py", Needs: []string{"sqlite.query"}},
		},
	}
}

// ticketsOfBuyers needs orders to know whose tickets are asked for. Direct calls read
// the tickets of all at once, which costs less than reading the orders in two turns.
func ticketsOfBuyers() *Task {
	answer := func(orders []Order, tickets map[int]int) string {
		var words []string
		for _, id := range byRevenue(orders)[:5] {
			words = append(words, fmt.Sprintf("%d %d", id, tickets[id]))
		}
		return strings.Join(words, ", ")
	}
	return &Task{
		Name: "tickets-of-buyers", Kind: Join, Upstreams: []string{"filesystem", "sqlite"},
		Prompt: "Find the five customers who ordered for most money (quantity times unit price) in " + allOrders + ", and how many tickets of each are not closed, by the shop's database. Answer as \"CUSTOMER_ID COUNT, CUSTOMER_ID COUNT, ...\", in the order of the money, most first.",
		Want: func(w *World) string {
			open := map[int]int{}
			for _, t := range w.Tickets {
				if t.Status != "closed" {
					open[t.Customer]++
				}
			}
			return answer(w.Orders, open)
		},
		Needs: joinNeeds, Queries: joinQueries(),
		Direct: func(m *ScriptRun) string {
			m.Call("sqlite.list-tables", map[string]any{})
			texts := m.All(query("SELECT group_concat(customer_id || ':' || n, ';') AS \"all\" FROM (SELECT customer_id, COUNT(*) AS n FROM tickets WHERE status <> 'closed' GROUP BY customer_id)"), readOrders(m))
			open := map[int]int{}
			for id, n := range pairsIn(m, texts[0]) {
				open[number(m, id)] = number(m, n)
			}
			return answer(ordersIn(m, texts[1]), open)
		},
		Programs: []Program{
			{File: "tickets-of-buyers-look.ts", Needs: []string{"sqlite.list_tables", "sqlite.query"}},
			{File: "tickets-of-buyers.ts", Needs: []string{"filesystem.read_multiple_files", "sqlite.query"}},
		},
	}
}

// latePayers joins three things of thousands of rows. Its first program takes what is a list for text, as models do.
func latePayers() *Task {
	answer := func(orders []Order, paid map[int]time.Time, segment map[int]string) string {
		return tally(orders, func(o Order) (string, int) {
			if at, is := paid[o.ID]; is && at.Sub(o.Day) > 20*24*time.Hour {
				return segment[o.Customer], 1
			}
			return "", 0
		}).format(0, strconv.Itoa)
	}
	return &Task{
		Name: "late-payers", Kind: Join, Upstreams: []string{"filesystem", "sqlite"},
		Prompt: "How many of " + allOrders + " were paid more than 20 days after the order's date, by segment of the customer? Payments and customers are in the shop's database, dates are written YYYY-MM-DD. Answer as \"SEGMENT COUNT, SEGMENT COUNT, ...\", most first, ties in alphabetical order.",
		Want: func(w *World) string {
			paid, segment := map[int]time.Time{}, map[int]string{}
			for _, p := range w.Payments {
				paid[p.Order] = p.Day
			}
			for _, c := range w.Customers {
				segment[c.ID] = c.Segment
			}
			return answer(w.Orders, paid, segment)
		},
		Needs: joinNeeds, Queries: joinQueries(),
		Direct: func(m *ScriptRun) string {
			m.Call("sqlite.list-tables", map[string]any{})
			texts := m.All(
				query("SELECT segment AS key, group_concat(id) AS ids FROM customers GROUP BY segment"),
				query("SELECT paid_on AS key, group_concat(order_id) AS ids FROM payments GROUP BY paid_on"),
				readOrders(m))
			paid := map[int]time.Time{}
			for id, key := range idsIn(m, texts[1]) {
				paid[id] = day(m, key)
			}
			return answer(ordersIn(m, texts[2]), paid, idsIn(m, texts[0]))
		},
		Programs: []Program{
			{File: "late-payers-look.py", Needs: []string{"sqlite.list_tables", "sqlite.query"}},
			{File: "late-payers-guess.py", Fails: "the JSON object must be str", Needs: []string{"filesystem.read_multiple_files", "sqlite.query"}},
			{File: "late-payers.py"},
		},
	}
}

// idsIn reads rows of a key and the ids that have it.
func idsIn(m *ScriptRun, text string) map[int]string {
	keys := map[int]string{}
	for _, row := range Decode[[]struct{ Key, IDs string }](m, text) {
		for id := range strings.SplitSeq(row.IDs, ",") {
			keys[number(m, id)] = row.Key
		}
	}
	return keys
}

// byRevenue are customers, those who ordered for most first.
func byRevenue(orders []Order) []int {
	spent := map[int]int{}
	for _, o := range orders {
		spent[o.Customer] += total(o)
	}
	return slices.SortedFunc(maps.Keys(spent), func(a, b int) int { return cmp.Or(cmp.Compare(spent[b], spent[a]), cmp.Compare(a, b)) })
}
