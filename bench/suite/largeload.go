package suite

import (
	"fmt"
	"strings"
	"time"

	"sallyport/bench/tokencount"
)

// loadOrders copies files into the database. No tool does that, so in direct calls
// all of it passes through the model, and out of it again: in one turn, which only
// models can that may write as much as that.
func loadOrders() *Task {
	row := func(format string, o Order) string {
		return fmt.Sprintf(format, o.ID, o.Day.Format(time.DateOnly), o.Customer, o.SKU, o.Quantity, Money(o.Cents))
	}
	answer := func(orders []Order) string {
		quantity := 0
		for _, o := range orders {
			quantity += o.Quantity
		}
		return fmt.Sprintf("%d %d", len(orders), quantity)
	}
	return &Task{
		Name: "load-orders", Kind: MuchData, Upstreams: []string{"filesystem", "sqlite"},
		Prompt: "Load " + allOrders + " into a new table load_orders of the shop's database, with these columns (order_id INTEGER, date TEXT, customer_id INTEGER, sku TEXT, quantity INTEGER, unit_price REAL). Answer as \"ROWS QUANTITY\": how many rows the table has then, and the sum of their quantities.",
		Want:   func(w *World) string { return answer(w.Orders) },
		Done: func(w *World) error {
			var want []string
			for _, o := range w.Orders {
				want = append(want, row("%d %s %d %s %d %s", o))
			}
			return w.checkRows("SELECT printf('%d %s %d %s %d %.2f', order_id, date, customer_id, sku, quantity, unit_price) FROM load_orders ORDER BY order_id", want)
		},
		Needs:   []string{"filesystem.read_multiple_files", "sqlite.execute"},
		Queries: fileToTable(),
		Direct: func(m *ScriptRun) string {
			// The tool for transactions would say all of it again in its result.
			orders := ordersIn(m, m.All(readOrders(m), execute("CREATE TABLE load_orders (order_id INTEGER, date TEXT, customer_id INTEGER, sku TEXT, quantity INTEGER, unit_price REAL)"))[0])
			rows := make([]string, 0, len(orders))
			for _, o := range orders {
				rows = append(rows, row("(%d,'%s',%d,'%s',%d,%s)", o))
			}
			m.All(execute("INSERT INTO load_orders VALUES " + strings.Join(rows, ",")))
			return answer(orders)
		},
		Programs: []Program{{File: "load-orders.py", Needs: []string{"filesystem.read_text_file", "sqlite.execute"}}},
	}
}

// execute is the call that writes to the database.
func execute(sql string) tokencount.Call { return Call("sqlite.execute", map[string]any{"sql": sql}) }

// fileToTable are searches for what reads files and writes to the database.
func fileToTable() [][]string {
	return [][]string{{"read several text files", "execute a SQL statement"}, {"filesystem: read multiple files at once", "sqlite: change data by a SQL statement"}, {"filesystem read text file", "filesystem read multiple files", "sqlite execute"}}
}
