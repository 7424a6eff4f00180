package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/corpus"
)

func testBench(t *testing.T) *bench {
	t.Helper()
	return &bench{options: &options{catalog: t.TempDir(), queries: "../search/queries.jsonl", n: 1}, dir: t.TempDir()}
}

// TestDirect: the bare twin of a start connects to every server and fails if one lists nothing.
func TestDirect(t *testing.T) {
	b := testBench(t)
	from, err := b.source()
	if err != nil {
		t.Fatal(err)
	}
	servers := corpus.Deal(from.Tools(9), 3)
	for _, broken := range []bool{false, true} {
		if broken {
			servers[1].Tools = nil
		}
		town, stop, err := b.overHTTP(servers)
		if err != nil {
			t.Fatal(err)
		}
		took, err := town.direct(t.Context())
		if (err != nil) != broken || took <= 0 {
			t.Errorf("%v ms, %v; a server without tools: %v", took, err, broken)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if want := servers[2].Tools[2].Tool.ID.Name; town.last != want || strings.Count(town.settings, "\n") != 4 {
			t.Errorf("%s is the last tool, want %s; settings:\n%s", town.last, want, town.settings)
		}
	}
}

// TestListing: what is an upstream over stdio lists what is in its file, to the SDK's client.
func TestListing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.json")
	if err := os.WriteFile(path, []byte(`{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- errors.Join(beListing(path, json.NewDecoder(toServer), json.NewEncoder(fromServer)), fromServer.Close())
	}()
	session, err := connectAndList(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.ListPrompts(t.Context(), nil); err == nil {
		t.Error("it has prompts")
	}
	if err := errors.Join(session.Close(), <-ended); err != nil {
		t.Error(err)
	}
}

func TestByTurns(t *testing.T) {
	var order []string
	step := func(name string, took float64) func() (float64, error) {
		return func() (float64, error) {
			order = append(order, name)
			return took, nil
		}
	}
	one, other, err := byTurns(t.Context(), 2, func() { order = append(order, "-") }, step("a", 1), step("b", 2))
	if err != nil || !slices.Equal(one, []float64{1, 1}) || !slices.Equal(other, []float64{2, 2}) {
		t.Errorf("%v %v %v", one, other, err)
	}
	if diff := cmp.Diff([]string{"-", "a", "b", "-", "b", "a"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	failing := errors.New("no")
	if _, _, err := byTurns(t.Context(), 2, func() {}, step("a", 1), func() (float64, error) { return 0, failing }); !errors.Is(err, failing) {
		t.Errorf("got %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := byTurns(gone, 2, func() {}, step("a", 1), step("b", 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestIndexAndSearch measures a small index, its memory and queries of it, each with a twin.
func TestIndexAndSearch(t *testing.T) {
	b := testBench(t)
	defer func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}()
	b.sizes = []int{150}
	if err := b.indexing(t.Context(), 150); err != nil {
		t.Fatal(err)
	}
	p := b.last
	b.tools.Queries = []string{p.tools[3].Tool.Wire, p.tools[80].Tool.Description}
	if err := b.searching(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := b.generate(t.Context(), "150 tools", p.tools); err != nil {
		t.Fatal(err)
	}
	var cases []string
	for _, r := range b.rows {
		cases = append(cases, r.Case)
		if without(r) != "" {
			continue
		}
		if r.Bare == nil || r.P50 <= 0 || r.Bare.P50 <= 0 || r.Ratio <= 0 {
			t.Errorf("%s: %+v next to %+v", r.Case, r.Summary, r.Bare)
		}
	}
	if diff := cmp.Diff([]string{"index of 150 tools", "index of 150 tools: index.FromTool", "index of 150 tools: index.New", "index of 150 tools, memory", "query of 150 tools", "wrappers of 150 tools"}, cases); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	b.tools.Queries = []string{"xyzzyqwv"}
	if err := b.searching(t.Context(), p); err == nil {
		t.Error("a query that finds nothing was measured")
	}
}

// TestWrongFlags: what cannot be measured is refused before anything is.
func TestWrongFlags(t *testing.T) {
	for _, test := range []struct {
		n           int
		only, sizes string
		want        string
	}{
		{0, "", "100", "-n is 0"},
		{1, "", "100,x", `"x" is no number`},
		{1, "", "0", `"0" is no number`},
		{1, "(", "100", "-only"},
		{1, "serach", "100", "no group has such a name (use protocol, warm"},
	} {
		if _, err := (&options{n: test.n}).measure(t.Context(), test.only, test.sizes); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("-n %d -only %q -sizes %q: %v, want %q", test.n, test.only, test.sizes, err, test.want)
		}
	}
}

// TestIdle: interpreters that wait are looked at while they live, and end.
func TestIdle(t *testing.T) {
	if mb, err := idle(t.Context(), 1); err != nil || mb < 3 || mb > 250 {
		t.Errorf("an interpreter that waits takes %.1f MB, %v", mb, err)
	}
	gone := languages()[0]
	gone.waits = "import sys; sys.exit(3)"
	if _, _, err := gone.wait(t.Context()); err == nil || !strings.Contains(err.Error(), "says nothing") {
		t.Errorf("an interpreter that ends gave %v", err)
	}
}
