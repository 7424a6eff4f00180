package corpus_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"sallyport/bench/corpus"
	"sallyport/internal/testutil/ireval"
	"sallyport/internal/tool"
)

// sources are the catalogue's, where it is there, and the one that is made up.
func sources(t *testing.T) map[string]*corpus.Source {
	t.Helper()
	all := map[string]*corpus.Source{}
	for name, folder := range map[string]string{"catalogue": "../../../shared/catalog", "made": t.TempDir()} {
		s, err := corpus.Open(folder, "../search/queries.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Queries) < 400 {
			t.Errorf("%d queries, want those of the file", len(s.Queries))
		}
		all[name] = s
	}
	return all
}

// TestTools: as many as were asked for, all different, each with a schema that is JSON, and the same ones again.
func TestTools(t *testing.T) {
	again := sources(t)
	for name, s := range sources(t) {
		if s.Real && name == "made" || s.Name() == "" || s.Digest() != again[name].Digest() {
			t.Errorf("%s is %q, %s and then %s", name, s.Name(), s.Digest(), again[name].Digest())
		}
		for _, n := range []int{1, 100, len(s.Catalog()) + 1} {
			tools := s.Tools(n)
			if len(tools) != n {
				t.Fatalf("%s: %d tools, want %d", name, len(tools), n)
			}
			known := map[tool.ID]bool{}
			for _, e := range tools {
				if known[e.Tool.ID] || !json.Valid(e.Tool.Input) || e.Tool.ID.Upstream != tool.Identifier(e.Server) {
					t.Errorf("%s: %s of %s stands twice or has a schema that is none: %s", name, e.Tool.ID, e.Server, e.Tool.Input)
				}
				known[e.Tool.ID] = true
			}
			if !reflect.DeepEqual(tools, s.Tools(n)) { // cmp.Diff takes seconds for it
				t.Errorf("%s: another run has other %d tools", name, n)
			}
		}
	}
}

// TestRoundsDiffer: a tool of a later round has other words than the one that it was made of.
func TestRoundsDiffer(t *testing.T) {
	for name, s := range sources(t) {
		base := len(s.Catalog())
		tools := s.Tools(2 * base)
		same := 0
		for i := range base {
			if a, b := tools[i].Tool, tools[base+i].Tool; a.Description == b.Description && string(a.Input) == string(b.Input) {
				same++
			}
		}
		if same > base/10 {
			t.Errorf("%s: %d of %d tools are as they were", name, same, base)
		}
	}
}

func TestServers(t *testing.T) {
	tools := sources(t)["made"].Tools(601)
	dealt := corpus.Deal(tools, 60)
	if len(dealt) != 60 || dealt[7].Name != "s07" || len(dealt[0].Tools) != 10 {
		t.Errorf("%d servers, the first with %d tools", len(dealt), len(dealt[0].Tools))
	}
	var all []ireval.Entry
	for _, s := range corpus.ByServer(tools) {
		all = append(all, s.Tools...)
	}
	if !reflect.DeepEqual(tools, all) {
		t.Errorf("servers have %d tools, want the %d of all", len(all), len(tools))
	}
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(dealt[59].List(), &list); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list.Tools, func(one struct{ Name string }) bool { return one.Name == tools[600].Tool.Wire }) {
		t.Errorf("the last server lists %v, not the last tool", list.Tools)
	}
}
