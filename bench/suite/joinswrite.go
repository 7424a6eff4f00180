package suite

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// writingJoins are joins that write their result back: to a file, to the database, to the graph.
func writingJoins() []*Task { return []*Task{bestCustomers(), unpaidOrders(), categoryRevenue()} }

// bestCustomers goes from files by the database to the graph. Of the database it looks at a row first: what it writes is to be right at once.
func bestCustomers() *Task {
	type best struct{ name, said string }
	three := func(orders []Order, name func(id int) string) []best {
		spent := tally(orders, func(o Order) (string, int) { return name(o.Customer), total(o) })
		var list []best
		for _, id := range byRevenue(orders)[:3] {
			list = append(list, best{name(id), "ordered " + Money(spent[name(id)]) + " in 2026"})
		}
		return list
	}
	wanted := func(w *World) []best {
		return three(w.Orders, func(id int) string { return w.Customers[id-w.Customers[0].ID].Name })
	}
	entities := func(list []best) (all []map[string]any) {
		for _, b := range list {
			all = append(all, map[string]any{"name": b.name, "entityType": "best_customer", "observations": []string{b.said}})
		}
		return all
	}
	names := func(list []best) string {
		return list[0].name + ", " + list[1].name + ", " + list[2].name
	}
	return &Task{
		Name: "best-customers", Kind: Join, Upstreams: []string{"filesystem", "memory", "sqlite"},
		Prompt: "Find the three customers who ordered for most money (quantity times unit price) in " + allOrders + ". Their names are in the table customers (id, name) of the shop's database. Put each into the knowledge graph, as an entity with the customer's name, the type best_customer and the one observation \"ordered AMOUNT in 2026\", the amount with two decimals. Answer with the names, most money first, separated by a comma and a space.",
		Want:   func(w *World) string { return names(wanted(w)) },
		Done: func(w *World) error {
			return w.checkMemory("entity", entities(wanted(w))...)
		},
		Needs:   []string{"filesystem.read_multiple_files", "sqlite.query", "memory.create_entities"},
		Queries: [][]string{{"read several text files", "run a SQL query", "create entities in the knowledge graph"}, {"filesystem: read multiple files at once", "sqlite: read-only SQL query", "memory create entities"}, {"filesystem read multiple files", "sqlite query"}},
		Direct: func(m *ScriptRun) string {
			texts, name := m.All(query(`SELECT group_concat(id || ':' || name, ';') AS "all" FROM customers`), readOrders(m)), map[int]string{}
			for id, text := range pairsIn(m, texts[0]) {
				name[number(m, id)] = text
			}
			list := three(ordersIn(m, texts[1]), func(id int) string { return name[id] })
			m.Call("memory.create_entities", map[string]any{"entities": entities(list)})
			return names(list)
		},
		Programs: []Program{
			{File: "best-customers-look.py", Needs: []string{"sqlite.query"}},
			{File: "best-customers.py", Needs: []string{"filesystem.read_multiple_files", "sqlite.query", "memory.create_entities"}},
		},
	}
}

// unpaidOrders leaves a report of hundreds of lines, which direct calls have to spell out.
func unpaidOrders() *Task {
	report := func(orders []Order, paid map[int]int) (text, answer string) {
		var b strings.Builder
		n, sum := 0, 0
		b.WriteString("order_id,missing")
		for _, o := range slices.SortedFunc(slices.Values(orders), func(a, b Order) int { return cmp.Compare(a.ID, b.ID) }) {
			if missing := total(o) - paid[o.ID]; missing > 0 {
				n, sum = n+1, sum+missing
				fmt.Fprintf(&b, "\n%d,%s", o.ID, Money(missing))
			}
		}
		return b.String(), fmt.Sprintf("%d %s", n, Money(sum))
	}
	wanted := func(w *World) (text, answer string) {
		paid := map[int]int{}
		for _, p := range w.Payments {
			paid[p.Order] = p.Cents
		}
		return report(w.Orders, paid)
	}
	return &Task{
		Name: "unpaid-orders", Kind: Join, Upstreams: []string{"filesystem", "sqlite"},
		Prompt: "Which of " + allOrders + " are not paid, or not in full, by the payments in the shop's database? An order costs quantity times unit price. Write {files}/out/unpaid-orders.csv with the header order_id,missing and a line for each such order, in the order of their ids: the id and the amount that is missing, with two decimals. Answer as \"COUNT TOTAL\": how many they are, and what is missing in all.",
		Want:   func(w *World) string { _, answer := wanted(w); return answer },
		Done: func(w *World) error {
			text, _ := wanted(w)
			return w.checkFile("out/unpaid-orders.csv", text)
		},
		Needs:   append([]string{"filesystem.write_file"}, joinNeeds...),
		Queries: append([][]string{append([]string{"write a text file"}, joinQueries()[0]...)}, append([]string{"filesystem: write file"}, joinQueries()[1]...)),
		Direct: func(m *ScriptRun) string {
			m.Call("sqlite.list-tables", map[string]any{})
			texts, paid := m.All(query(`SELECT group_concat(order_id || ':' || amount, ';') AS "all" FROM payments`), readOrders(m)), map[int]int{}
			for id, amount := range pairsIn(m, texts[0]) {
				paid[number(m, id)] = cents(m, amount)
			}
			text, answer := report(ordersIn(m, texts[1]), paid)
			m.Call("filesystem.write_file", map[string]any{"path": m.Files() + "/out/unpaid-orders.csv", "content": text + "\n"})
			return answer
		},
		Programs: []Program{
			{File: "unpaid-orders-look.py", Needs: []string{"sqlite.list_tables", "sqlite.query"}},
			{File: "unpaid-orders.py", Needs: []string{"filesystem.read_text_file", "filesystem.write_file", "sqlite.query"}},
		},
	}
}

// categoryRevenue leaves a table of its own.
func categoryRevenue() *Task {
	by := func(orders []Order, products []Product) totals {
		category := map[string]string{}
		for _, p := range products {
			category[p.SKU] = p.Category
		}
		return tally(orders, func(o Order) (string, int) { return o.Day.Format("2006-01") + " " + category[o.SKU], total(o) })
	}
	return &Task{
		Name: "category-revenue", Kind: Join, Upstreams: []string{"filesystem", "sqlite"},
		Prompt: "Work out the revenue (quantity times unit price) by month and category of the product, of " + allOrders + "; the categories are in {files}/products.json (a list of objects with sku and category). Put it into a new table category_revenue (month TEXT, category TEXT, revenue REAL) of the shop's database, a row for each month (YYYY-MM) and category, revenue with two decimals. Answer with the highest of them, as \"MONTH CATEGORY REVENUE\".",
		Want:   func(w *World) string { return by(w.Orders, w.Products).format(1, Money) },
		Done: func(w *World) error {
			var want []string
			t := by(w.Orders, w.Products)
			for _, name := range t.sortedNames() {
				want = append(want, name+" "+Money(t[name]))
			}
			slices.Sort(want)
			return w.checkRows("SELECT month || ' ' || category || printf(' %.2f', revenue) FROM category_revenue ORDER BY month, category", want)
		},
		Needs:   []string{"filesystem.read_multiple_files", "sqlite.execute"},
		Queries: fileToTable(),
		Direct: func(m *ScriptRun) string {
			text := m.All(readOrders(m, "products.json"), execute("CREATE TABLE category_revenue (month TEXT, category TEXT, revenue REAL)"))[0]
			t := by(ordersIn(m, text), productsIn(m, text))
			var rows []string
			for _, name := range t.sortedNames() {
				month, category, _ := strings.Cut(name, " ")
				rows = append(rows, fmt.Sprintf("('%s','%s',%s)", month, category, Money(t[name])))
			}
			m.All(execute("INSERT INTO category_revenue VALUES " + strings.Join(rows, ",")))
			return t.format(1, Money)
		},
		Programs: []Program{{File: "category-revenue.py", Needs: []string{"filesystem.read_text_file", "sqlite.execute"}}},
	}
}

// checkRows checks the first column of the result of a database query.
func (w *World) checkRows(sql string, want []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	script := "const Database = require(process.argv[1]); const db = new Database(process.argv[2]); for (const row of db.prepare(process.argv[3]).raw().all()) console.log(row[0]); db.close()"
	out, err := exec.CommandContext(ctx, "node", "-e", script, filepath.Join(w.Modules, "better-sqlite3"), w.Database(), sql).Output()
	if err != nil {
		return fmt.Errorf("query what was to be kept: %w", err)
	}
	if got := strings.Split(strings.TrimSpace(string(out)), "\n"); !slices.Equal(got, want) {
		return fmt.Errorf("database has %d rows, %.200q, not %d, %.200q", len(got), got, len(want), want)
	}
	return nil
}
