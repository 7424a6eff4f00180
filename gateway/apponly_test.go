package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// TestAppOnlyTools: a tool that its upstream's user interface calls is in no search and no wrapper, and no program can call it.
func TestAppOnlyTools(t *testing.T) {
	t.Parallel()
	board := newSite(t, func(s *site) {
		s.tool("show_board", "Show the board.", "", echo)
		s.add(&mcp.Tool{Name: "refresh_board", Description: "Refresh the board.", Meta: mcp.Meta{"ui": map[string]any{"visibility": []string{"app"}}}}, "",
			func(json.RawMessage) *mcp.CallToolResult { return text("fresh") })
	})
	programs := map[string]gateway.GoProgram{"refresh": func(ctx context.Context, call func(context.Context, string, string) (tool.Result, error)) error {
		_, err := call(ctx, "board.refresh_board", "{}")
		return err
	}}
	g := open(t, settings(map[string]*site{"board": board}), (&gateway.Options{NoPool: true}).InProcess(programs))
	g.Catalog.WaitConnected(t.Context())
	found, err := g.Searcher.Search(t.Context(), toolsearch.Request{Query: "board"})
	if err != nil || !strings.Contains(found.Text(), "show_board") || strings.Contains(found.Text(), "refresh_board") {
		t.Errorf("found %s, %v", found.Text(), err)
	}
	if got := functionsOf(g.Completer.Functions(t.Context(), "board", "python")); got != "show_board" {
		t.Errorf("an editor completes %s", got)
	}
	for path := range g.Catalog.Tree() {
		if strings.Contains(path, "refresh_board") {
			t.Errorf("there is a wrapper %s", path)
		}
	}
	e, err := g.Executor.Execute(t.Context(), execution.Program{Code: "refresh"})
	if err != nil || e.Status == sandbox.OK || !strings.Contains(e.Text(), "user interface") || board.hits.Load() != 0 {
		t.Errorf("%s, %v, %d calls", e.Text(), err, board.hits.Load())
	}
	if result, err := call(t, g, "board.refresh_board", "{}"); err != nil || result.Text() != "fresh" {
		t.Errorf("a call of the interface: %s, %v", result.Text(), err)
	}
}
