package gateway_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// soon is how long a change of an upstream's list may take to be seen everywhere, on a busy machine.
const soon = 30 * time.Second

func TestToolsFollowTheUpstream(t *testing.T) {
	t.Parallel()
	sites := map[string]*site{"my-notes": newSite(t, notes), "calc": newSite(t, calc)}
	g := open(t, withRunsc(t, settings(sites)), nil)
	wantText(t, execute(t, g, "python", "from servers.calc import add\nadd(1, 2)"), sandbox.OK, "3")
	before := g.Catalog.Tree()

	sites["calc"].tool("subtract", "Take away.", `"properties":{"from":{"type":"number"}}`, echo)
	sites["calc"].RemoveTools("add")
	testutil.Eventually(t, "the wrappers follow", soon, func() bool {
		tree := g.Catalog.Tree()
		return tree["calc/subtract.py"] != nil && tree["calc/subtract.ts"] != nil && tree["calc/add.py"] == nil && tree["calc/add.ts"] == nil
	})
	for path, data := range g.Catalog.Tree() {
		if !strings.HasPrefix(path, "calc/") && !bytes.Equal(data, before[path]) {
			t.Errorf("%s changed", path)
		}
	}
	if found := search(t, g, toolsearch.Request{Query: "subtract", Limit: 1}); len(found.Tools) != 1 || found.Tools[0].ID.Name != "subtract" {
		t.Errorf("found %+v", found)
	}
	for _, hit := range search(t, g, toolsearch.Request{Query: "add numbers"}).Tools {
		if hit.ID.String() == "calc.add" {
			t.Error("a search finds what is gone")
		}
	}
	wantText(t, execute(t, g, "python", "from servers.calc import subtract\nsubtract(from_=1)"), sandbox.OK, `{"from":1}`)
	wantText(t, execute(t, g, "typescript", "import { subtract } from 'servers/calc'; await subtract({ from: 1 })"), sandbox.OK, `{"from":1}`)
	wantText(t, execute(t, g, "python", "from servers.calc import add\nadd(1, 2)"), sandbox.Failed, "servers.calc has no tool add")
	wantText(t, execute(t, g, "typescript", "import { add } from 'servers/calc'; await add({ a: 1, b: 2 })"), sandbox.Failed, "servers/calc has no tool add")
	_, err := call(t, g, "calc.add", `{"a":1,"b":2}`)
	wantError(t, err, tool.NotFound, "calc.add")
}

// TestSchemaFollowsTheUpstream changes a definition under the same name.
func TestSchemaFollowsTheUpstream(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) { s.tool("read", "", `"properties":{"path":{"type":"string"}}`, echo) })
	g := open(t, settings(map[string]*site{"up": s}), nil)
	if _, err := call(t, g, "up.read", `{"path":"x"}`); err != nil {
		t.Fatal(err)
	}
	s.tool("read", "", `"properties":{"file":{"type":"string"}}`, echo)
	testutil.Eventually(t, "arguments are checked against the new schema", soon, func() bool {
		_, err := call(t, g, "up.read", `{"path":"x"}`)
		return err != nil && strings.Contains(err.Error(), "parameters: file")
	})
	if _, err := call(t, g, "up.read", `{"file":"x"}`); err != nil {
		t.Error(err)
	}
}

// TestListThatBecomesEmpty leaves an upstream without tools, but still there.
func TestListThatBecomesEmpty(t *testing.T) {
	t.Parallel()
	s := newSite(t, calc)
	g := open(t, settings(map[string]*site{"calc": s}), nil)
	g.Catalog.WaitConnected(t.Context())
	s.RemoveTools("add", "echo", "fail", "picture")
	testutil.Eventually(t, "all tools are gone", soon, func() bool { return len(g.Catalog.Tools()) == 0 })
	if g.Catalog.Tree()["calc/add.py"] != nil || g.Catalog.Tree()["calc/__init__.py"] == nil {
		t.Error("the wrappers did not follow")
	}
	found := search(t, g, toolsearch.Request{})
	if len(found.Upstreams) != 1 || found.Upstreams[0].Tools != 0 || found.Upstreams[0].Problem != "" {
		t.Errorf("found %+v", found)
	}
	_, err := call(t, g, "calc.add", `{"a":1,"b":2}`)
	wantError(t, err, tool.NotFound, "there is no tool calc.add")
	s.tool("again", "", "", echo)
	testutil.Eventually(t, "a new one is seen", soon, func() bool { return len(g.Catalog.Tools()) == 1 })
}

// TestSearchesWhileListsChange never sees half of a change: what is found can be described.
func TestSearchesWhileListsChange(t *testing.T) {
	t.Parallel()
	s := newSite(t, calc)
	g := open(t, settings(map[string]*site{"calc": s}), nil)
	g.Catalog.WaitConnected(t.Context())
	for end, i := time.Now().Add(2500*time.Millisecond), 0; time.Now().Before(end); i++ {
		if i%20 == 0 {
			s.RemoveTools("sum")
			s.tool("sum", strings.Repeat("Sum up numbers. ", 1+i%40), "", echo)
		}
		found := search(t, g, toolsearch.Request{Query: "add numbers", Limit: 20})
		if len(found.Tools) == 0 || found.Tools[0].Text == "" || found.Total < len(found.Tools) {
			t.Fatalf("found %+v", found)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestWrappersThatCannotBeWritten keeps programs from running against wrappers
// that are not what a search shows, until they can be written again.
func TestWrappersThatCannotBeWritten(t *testing.T) {
	s := newSite(t, calc)
	g := open(t, withRunsc(t, settings(map[string]*site{"calc": s})), nil)
	wantText(t, execute(t, g, "python", "from servers.calc import add\nadd(1, 2)"), sandbox.OK, "3")
	found, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "sallyport", "*", "servers", "calc"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the wrappers are in %v, %v", found, err)
	}
	tree := filepath.Dir(found[0])
	if err := errors.Join(os.Rename(tree, tree+".away"), os.WriteFile(tree, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	s.tool("subtract", "Take away.", "", echo)
	testutil.Eventually(t, "a search shows the change", soon, func() bool { return len(g.Catalog.Tools()) == 5 })
	_, err = g.Executor.Execute(t.Context(), execution.Program{Code: "1"})
	wantError(t, err, tool.Internal, "programs cannot be run: publish wrappers", "sallyport doctor")
	if err := errors.Join(os.Remove(tree), os.Rename(tree+".away", tree)); err != nil {
		t.Fatal(err)
	}
	wantText(t, execute(t, g, "python", "from servers.calc import subtract\nsubtract(x=1)"), sandbox.OK, `{"x":1}`)
}
