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

	"sallyport/bench/agent"
	"sallyport/bench/benchtest"
	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/internal/testutil"
)

// stuck is tools of which one does not work, and a model that calls it, or gives up.
type stuck struct{ gaveUp, broken error }

func (stuck) Instructions() []string               { return nil }
func (stuck) Definitions() []tokencount.Definition { return []tokencount.Definition{{Name: "do"}} }

func (s stuck) Call(context.Context, tokencount.Call) (tokencount.Result, error) {
	return tokencount.Result{}, s.broken
}

func (s stuck) Next(context.Context, *tokencount.Transcript) (agent.Move, error) {
	return agent.Move{Calls: []tokencount.Call{{Tool: "do", Args: json.RawMessage("{}")}}}, s.gaveUp
}

// What a model does wrong is counted as wrong; what is wrong with the machinery ends the benchmark.
func TestFailures(t *testing.T) {
	lost, gone := errors.New("I do not know"), errors.New("the server is gone")
	for _, test := range []struct {
		what        string
		with        stuck
		failed, err error
	}{
		{"a model that gives up", stuck{gaveUp: lost}, lost, nil},
		{"a model that never ends", stuck{}, agent.ErrLimit, nil},
		{"a server that is gone", stuck{broken: gone}, nil, gone},
	} {
		failed, err := work(t.Context(), test.with, test.with, &tokencount.Transcript{}, agent.Limits{Turns: 3})
		if !errors.Is(failed, test.failed) || !errors.Is(err, test.err) {
			t.Errorf("%s: failed %v, error %v", test.what, failed, err)
		}
	}
}

func TestBetter(t *testing.T) {
	right, wrong := &playResult{}, &playResult{failed: errors.New("wrong")}
	for _, test := range []struct {
		p, than     *playResult
		cost, least int
		want        bool
	}{
		{right, wrong, 9, 1, true}, {wrong, right, 1, 9, false}, {right, right, 1, 9, true}, {right, right, 9, 1, false}, {wrong, wrong, 1, 9, true}, {right, right, 5, 5, false},
	} {
		if got := test.p.better(test.than, test.cost, test.least); got != test.want {
			t.Errorf("failed %v at %d, rather than failed %v at %d: %v", test.p.failed, test.cost, test.than.failed, test.least, got)
		}
	}
}

// Who is connected to a server connects to no other variant of it before all others are.
func TestVariantsLast(t *testing.T) {
	var got []string
	for _, c := range variantsLast([]agent.Catalogue{{Name: "a", Package: "x"}, {Name: "a-full", Package: "x"}, {Name: "b"}, {Name: "c"}, {Name: "d", Package: "y"}}) {
		got = append(got, c.Name)
	}
	if want := []string{"a", "b", "c", "d", "a-full"}; !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
}

// With a world and servers of its own a task is the same to the last byte, and ends well, each time that it is played.
func TestPlaysAreAlike(t *testing.T) {
	dir := testutil.ShortDir(t)
	b := newBench(&options{folder: dir, upstreams: testutil.Upstreams(t), sallyport: benchtest.Sallyport(t, dir)})
	var err error
	if b.world, err = suite.NewWorld(b.worldDir(), b.upstreams); err != nil {
		t.Fatal(err)
	}
	task := suite.Tasks()[0]
	setup := agent.Setup{World: b.world, Upstreams: task.Upstreams, Sallyport: b.sallyport}
	for _, mode := range suite.Modes() {
		var said [2]string
		for i := range said {
			p, err := b.play(t.Context(), task, mode, setup)
			if err := errors.Join(err, p.failed); err != nil {
				t.Fatal(err)
			}
			text, err := json.MarshalIndent(p.transcript, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			said[i] = string(text)
			if said := len(p.transcript.Instructions); said != 0 {
				t.Errorf("in mode %s there are %d instructions", mode, said)
			}
		}
		if diff := cmp.Diff(strings.Split(said[0], "\n"), strings.Split(said[1], "\n")); diff != "" {
			t.Errorf("%s in mode %s is not the same again:\n%s", task.Name, mode, diff)
		}
	}
}

// What cannot be measured leaves nothing behind: the folder is that of the next run.
func TestBadCatalogue(t *testing.T) {
	dir, catalog := testutil.ShortDir(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(catalog, "a.json"), []byte(`{"tools": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"-catalog", catalog, "-folder", dir, "-upstreams", testutil.Upstreams(t), "-sizes", "1"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "read catalogue") {
		t.Errorf("a bad catalogue: %v", err)
	}
	for _, name := range []string{"world", "cache"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
}
