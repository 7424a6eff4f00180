package suite

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/bench/tokencount"
)

// large are tasks of many calls, much data and joins. Prompts name the files, so
// that direct calls read them at once; what only the database knows comes last in
// a script, next to the files, so that what is long is read as seldom as it can be.
func large() []*Task { return slices.Concat(manyCalls(), muchData(), joins(), writingJoins()) }

// totals are amounts by name: cents, grams, lines or how many there are.
type totals map[string]int

// sortedNames returns the names by descending amount, then alphabetically.
func (t totals) sortedNames() []string {
	return slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(cmp.Compare(t[b], t[a]), cmp.Compare(a, b))
	})
}

// format returns "NAME AMOUNT, NAME AMOUNT" of the first n, of all if n is 0.
func (t totals) format(n int, amount func(int) string) string {
	names := t.sortedNames()
	if n > 0 {
		names = names[:min(n, len(names))]
	}
	words := make([]string, 0, len(names))
	for _, name := range names {
		words = append(words, name+" "+amount(t[name]))
	}
	return strings.Join(words, ", ")
}

// tally adds up what is of one name.
func tally[T any](list []T, of func(T) (name string, amount int)) totals {
	t := totals{}
	for _, element := range list {
		if name, amount := of(element); name != "" {
			t[name] += amount
		}
	}
	return t
}

func total(o Order) int { return o.Quantity * o.Cents }

// readFiles is the call that reads many files of the world; pattern has a number in it, from 1 to n.
func readFiles(m *ScriptRun, n int, pattern string, more ...string) tokencount.Call {
	var paths []string
	for i := range n {
		paths = append(paths, filepath.Join(m.Files(), fmt.Sprintf(pattern, i+1)))
	}
	for _, name := range more {
		paths = append(paths, filepath.Join(m.Files(), name))
	}
	return Call("filesystem.read_multiple_files", map[string]any{"paths": paths})
}

// readOrders is the call that reads all orders.
func readOrders(m *ScriptRun, more ...string) tokencount.Call {
	return readFiles(m, 12, "orders/2026-%02d.csv", more...)
}

// query is the call that reads the database.
func query(sql string) tokencount.Call { return Call("sqlite.query", map[string]any{"sql": sql}) }

// ordersIn are the orders in what readOrders gave.
func ordersIn(m *ScriptRun, text string) []Order {
	var list []Order
	for line := range strings.Lines(text) {
		field := strings.Split(strings.TrimSpace(line), ",")
		if len(field) != 6 || field[0] == "order_id" {
			continue
		}
		list = append(list, Order{ID: number(m, field[0]), Day: day(m, field[1]), Customer: number(m, field[2]), SKU: field[3], Quantity: number(m, field[4]), Cents: cents(m, field[5])})
	}
	return list
}

// requestsIn are the requests in what reading logs gave.
func requestsIn(m *ScriptRun, text string) []Request {
	var list []Request
	for line := range strings.Lines(text) {
		field := strings.Fields(line)
		if len(field) != 6 {
			continue
		}
		at, err := time.Parse(time.RFC3339, field[0])
		if err != nil {
			m.Fail("read log: %w", err)
		}
		list = append(list, Request{At: at, Level: field[1], ID: field[2], Path: field[3], Status: number(m, field[4]), Millis: number(m, strings.TrimSuffix(field[5], "ms"))})
	}
	return list
}

// productsIn are the products in what reading files gave, the last of which is products.json.
func productsIn(m *ScriptRun, text string) []Product {
	_, list, found := strings.Cut(text, "products.json:\n")
	if !found {
		list = text
	}
	return Decode[[]Product](m, list)
}

// pairsIn reads "KEY:VALUE KEY:VALUE", which [query] gives as a row with one column, all.
func pairsIn(m *ScriptRun, text string) map[string]string {
	pairs := map[string]string{}
	for _, row := range Decode[[]struct{ All string }](m, text) {
		for pair := range strings.SplitSeq(row.All, ";") {
			key, value, _ := strings.Cut(pair, ":")
			pairs[key] = value
		}
	}
	return pairs
}

func number(m *ScriptRun, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		m.Fail("read number: %w", err)
	}
	return n
}

// cents reads an amount with up to two decimals.
func cents(m *ScriptRun, text string) int {
	whole, part, _ := strings.Cut(text, ".")
	return number(m, whole)*100 + number(m, (part + "00")[:2])
}

func day(m *ScriptRun, text string) time.Time {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		m.Fail("read date: %w", err)
	}
	return t
}

// checkFile checks the text of a file that a task had to write below files/, ignoring white space at its end.
func (w *World) checkFile(name, want string) error {
	data, err := os.ReadFile(filepath.Join(w.Files(), name))
	if err != nil {
		return fmt.Errorf("read what was to be written: %w", err)
	}
	if got := strings.TrimSpace(string(data)); got != want {
		return fmt.Errorf("%s has %.200q, not %.200q", name, got, want)
	}
	return nil
}
