package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/catalog"
	"sallyport/gateway/mcpserver"
)

// TestLongListsHavePages, also when a list changes between two of them.
func TestLongListsHavePages(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 2500 {
		names = append(names, fmt.Sprintf("tool%04d", i))
	}
	d := &direct{t: t, url: serve(t, newDirectOn(t, &upstreams{offers: []catalog.UpstreamOffer{offering("up", names...)}}, true), &siteOptions{}) + "/mcp"}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "x"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: d.url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var got []string
	for def, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, def.Name)
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%d tools of %d", len(got), len(names))
	}
	first, err := session.ListTools(t.Context(), nil)
	if err != nil || len(first.Tools) != 1000 || first.NextCursor == "" {
		t.Errorf("first page: %d, %q, %v", len(first.Tools), first.NextCursor, err)
	}
}

// TestNames are each of one tool only.
func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70)
	offers := []catalog.UpstreamOffer{
		offering("a", "b__c", "plain", "_x", long, long+"y", "same", "odd\x1b[31m"), offering("a__b", "c", "same"), offering("z", "a__plain"),
	}
	for prefix, names := range map[bool][]string{
		false: {"a__b__c_", "a__plain", "a___x_", "a__same", "a__b__same_", "z__a__plain_"},
		true:  {"b__c", "plain", "_x", long, long + "y", "same", "c", "a__plain", "a__odd__31m", "a__b__same_"},
	} {
		d := &direct{t: t, url: serve(t, newDirectOn(t, &upstreams{offers: offers}, prefix), &siteOptions{}) + "/mcp"}
		list := d.dialogue("2025-11-25").ask("tools/list", `{}`)
		var got struct{ Tools []struct{ Name string } }
		if err := json.Unmarshal([]byte(list), &got); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, def := range got.Tools {
			if seen[def.Name] || !prefix && len(def.Name) > 64 {
				t.Errorf("name %s", def.Name)
			}
			seen[def.Name] = true
		}
		if len(seen) != 10 {
			t.Errorf("%d tools: %s", len(seen), list)
		}
		for _, name := range names {
			if !strings.Contains(list, `"name":"`+name) {
				t.Errorf("wire names %v: no %s in %s", prefix, name, list)
			}
		}
	}
}

// TestProgramsReportProgress for clients that ask for progress.
func TestProgramsReportProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var beats []float64
		near, far := mcp.NewInMemoryTransports()
		server, err := mcpserver.New(&upstreams{}, nil).Connect(t.Context(), far, nil)
		if err != nil {
			t.Fatal(err)
		}
		client, err := mcp.NewClient(&mcp.Implementation{Name: "x"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				beats = append(beats, req.Params.Progress)
			},
		}).Connect(t.Context(), near, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range []any{"p", nil} {
			beats = nil
			params := &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": "1", "timeout": 12}}
			if token != nil {
				params.SetProgressToken(token)
			}
			result, err := client.CallTool(t.Context(), params)
			if err != nil || result.Content[0].(*mcp.TextContent).Text != "it ran" {
				t.Errorf("%+v, %v", result, err)
			}
			synctest.Wait()
			if want := map[bool]string{true: "[5 10]", false: "[]"}[token != nil]; fmt.Sprint(beats) != want {
				t.Errorf("beats %v, not %s", beats, want)
			}
		}
		_ = client.Close()
		_ = server.Wait()
	})
}
