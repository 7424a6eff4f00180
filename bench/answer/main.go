// Command answer measures what search_tools answers: the judged queries of
// bench/search are put to a gateway that has the catalogue of real tools behind
// it, and a row for each style of query says how many tokens of o200k_base an
// answer has, how often the right tool is in it, and how often with a signature
// to write code from.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/tokens"
	"sallyport/internal/tool"
)

func main() {
	dir := flag.String("catalog", "../shared/catalog", "folder of tools/list answers, one file a server")
	queries := flag.String("queries", "bench/search/queries.jsonl", "judged queries, one JSON object a line")
	budget := flag.Int("budget", 0, "tokens of an answer; 0 is the default")
	show := flag.String("show", "", "print the answers to the queries with this text in them")
	flag.Parse()
	if err := run(*dir, *queries, *show, *budget, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "answer:", err)
		os.Exit(1)
	}
}

func run(dir, queries, show string, budget int, out io.Writer) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		fmt.Fprintf(out, "skipped: no catalogue of real tools in %s\n", dir)
		return nil
	}
	all, err := readQueries(queries)
	if err != nil {
		return err
	}
	counter, err := tokens.O200k()
	if err != nil {
		return err
	}
	b := &bench{counter: counter, ids: map[string]tool.ID{}, budget: budget, styles: map[string]*style{}, show: show, out: out}
	if err := b.open(paths); err != nil {
		return err
	}
	defer b.close()
	for _, q := range all {
		if err := b.ask(q); err != nil {
			return fmt.Errorf("ask %q: %w", q.Query, err)
		}
	}
	return b.report(out)
}

// query is one line of the judged queries.
type query struct {
	ID, Style, Query string
	Gold             []string
	Alts             map[string][]string
}

func readQueries(path string) (all []query, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var q query
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return nil, fmt.Errorf("read queries: %w", err)
		}
		all = append(all, q)
	}
	return all, lines.Err()
}

// bench is one gateway and what came of the queries, by style.
type bench struct {
	counter *tokens.Counter
	ids     map[string]tool.ID // by server.wire_name
	gateway *gateway.Gateway
	web     *http.Server
	budget  int
	show    string
	out     io.Writer
	styles  map[string]*style
	order   []string
}

// style adds up the queries of one style.
type style struct {
	tokens []int
	// named and signed count the gold tools in the answers, and those with a signature.
	gold, named, signed, first, weak int
	// cost adds what a model reads until it can write the call.
	cost int
}

// What it costs a model that the answer is not enough, in tokens: a look at one
// tool whose name it saw, or another search, with the turn that each takes.
const (
	costLook   = 500
	costSearch = 1500
)

// open serves every file of the catalogue as an upstream, and opens a gateway on them.
func (b *bench) open(paths []string) error {
	cfg := config.Default()
	mux := http.NewServeMux()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.web = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = b.web.Serve(listener) }() // until close
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		list, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := b.name(name, list); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		mux.Handle("/"+name, upstream{name, list})
		cfg.Upstreams = append(cfg.Upstreams, config.Upstream{
			Name: name, ID: tool.Identifier(name), URL: "http://" + listener.Addr().String() + "/" + name, Timeout: 30 * time.Second,
		})
	}
	if b.gateway, err = gateway.Open(&cfg, nil); err != nil {
		return err
	}
	b.gateway.Settle(context.Background())
	if n := len(b.gateway.Tools()); n < len(b.ids) {
		return fmt.Errorf("the gateway has %d of %d tools", n, len(b.ids))
	}
	return nil
}

func (b *bench) close() { _ = errors.Join(b.gateway.Close(), b.web.Close()) }

// name learns the ids of a server's tools.
func (b *bench) name(server string, list []byte) error {
	var l struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(list, &l); err != nil {
		return err
	}
	var wires []string
	for _, t := range l.Tools {
		wires = append(wires, t.Name)
	}
	for i, id := range tool.Identifiers(wires) {
		b.ids[server+"."+wires[i]] = tool.ID{Upstream: tool.Identifier(server), Name: id}
	}
	return nil
}

// upstream is an MCP server over HTTP that lists what a file has.
type upstream struct {
	name string
	list []byte
}

// ServeHTTP implements [http.Handler].
func (u upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ID     json.RawMessage
		Method string
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&req) != nil {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	if len(req.ID) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer := `"error":{"code":-32601,"message":"not here"}`
	switch req.Method {
	case "initialize":
		answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"` + u.name + `","version":"1"}}`
	case "tools/list":
		answer = `"result":` + string(bytes.TrimSpace(u.list))
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, req.ID, answer)
}

func (b *bench) ask(q query) error {
	found, err := b.gateway.Search(context.Background(), gateway.Search{Query: q.Query})
	if err != nil {
		return err
	}
	text := found.Text()
	n, err := b.counter.Count(text)
	if err != nil {
		return err
	}
	if b.show != "" && strings.Contains(q.Query, b.show) {
		fmt.Fprintf(b.out, "## %s (%v): %d tokens\n%s\n\n", q.Query, q.Gold, n, text)
	}
	for _, name := range []string{q.Style, "all"} {
		if name == "all" && q.Style == "none" {
			continue
		}
		if b.styles[name] == nil {
			b.styles[name] = &style{}
			b.order = append(b.order, name)
		}
		b.styles[name].count(b, q, found, n)
	}
	return nil
}

func (s *style) count(b *bench, q query, found gateway.Found, n int) {
	s.tokens = append(s.tokens, n)
	s.cost += n
	if found.Weak {
		s.weak++
	}
	for _, gold := range q.Gold {
		s.gold++
		best := -1
		for i, t := range found.Tools {
			for _, name := range append([]string{gold}, q.Alts[gold]...) {
				if t.ID == b.ids[name] && best < 0 {
					best = i
				}
			}
		}
		switch {
		case best < 0:
			s.cost += costSearch
			continue
		case signed(found, best):
			s.signed++
		default:
			s.cost += costLook
		}
		s.named++
		if best == 0 {
			s.first++
		}
	}
}

// signed reports whether the answer has the signature of a tool.
func signed(found gateway.Found, i int) bool { return found.Tools[i].Text != "" }

func (b *bench) report(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "style\t queries\t mean tokens\t p90\t max\t gold first\t with signature\t in the answer\t called weak\t cost\t")
	slices.SortFunc(b.order, func(x, y string) int { return len(b.styles[x].tokens) - len(b.styles[y].tokens) })
	for _, name := range b.order {
		s := b.styles[name]
		slices.Sort(s.tokens)
		sum, count := 0, len(s.tokens)
		for _, n := range s.tokens {
			sum += n
		}
		share := func(n int) string { return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(max(s.gold, 1))) }
		fmt.Fprintf(w, "%s\t %d\t %d\t %d\t %d\t %s\t %s\t %s\t %.1f%%\t %d\t\n", name, count, sum/count, s.tokens[(count-1)*9/10], s.tokens[count-1],
			share(s.first), share(s.signed), share(s.named), 100*float64(s.weak)/float64(count), s.cost/count)
	}
	return w.Flush()
}
