package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/harness"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/testutil/ireval"
	"sallyport/internal/tokens"
	"sallyport/internal/tool"
)

// gatewayClient is a real gateway with one upstream over HTTP for each server of a set,
// so that what is counted is what a model reads of search_tools.
type gatewayClient struct {
	*harness.Instance
	set     *ireval.Set
	counter *tokens.Counter
}

func openGateway(ctx context.Context, s *ireval.Set) (*gatewayClient, error) {
	counter, err := tokens.O200k()
	if err != nil {
		return nil, err
	}
	d, err := harness.Open(ctx, servers(s))
	if err != nil {
		return nil, err
	}
	if got := len(d.Catalog.Tools()); got != len(s.Entries) {
		return nil, errors.Join(fmt.Errorf("the gateway has %d of the %d tools of %s", got, len(s.Entries), s.Name), d.Close())
	}
	return &gatewayClient{d, s, counter}, nil
}

// servers are MCP servers that list the tools of a set; no one calls them.
func servers(s *ireval.Set) (list []harness.Server) {
	made, named := map[string]*mcp.Server{}, map[[2]string]bool{}
	for _, e := range s.Entries {
		server := made[e.Server]
		if server == nil {
			server = mcp.NewServer(&mcp.Implementation{Name: e.Server, Version: "1"}, nil)
			made[e.Server] = server
			handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
			list = append(list, harness.Server{Name: e.Server, About: e.About, Handler: handler})
		}
		def := definition(e.Tool)
		if named[[2]string{e.Server, def.Name}] { // a server of MCP has one tool of a name
			def.Name = e.Tool.ID.Name
		}
		named[[2]string{e.Server, def.Name}] = true
		server.AddTool(def, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errors.New("only to be found")
		})
	}
	return list
}

func definition(t tool.Tool) *mcp.Tool {
	def := &mcp.Tool{Name: t.Wire, Title: t.Title, Description: t.Description, InputSchema: object(t.Input)}
	if len(t.Output) > 0 {
		def.OutputSchema = object(t.Output)
	}
	if a := t.Annotations; a != (tool.Annotations{}) {
		def.Annotations = &mcp.ToolAnnotations{DestructiveHint: a.Destructive, OpenWorldHint: a.OpenWorld}
	}
	return def
}

// object is a schema that the SDK takes: one of type object.
func object(schema json.RawMessage) json.RawMessage {
	var kind struct{ Type any }
	if json.Unmarshal(schema, &kind) != nil || kind.Type != "object" {
		return json.RawMessage(`{"type":"object"}`)
	}
	return schema
}

// gatewayOptions holds the options of the client of a gateway.
type gatewayOptions struct {
	budget int       // tokens of an answer; 0 is the gateway's default
	show   string    // answers to queries with this text in them are printed
	out    io.Writer // there
}

// defaultBudget is the default size of an answer of the gateway, in tokens.
const defaultBudget = 400

// measure fills in what the answers to the rows' queries cost: the tokens of the
// first answer, and those until a gold tool is among the tools that were told of.
// Where the first answer has none, a model asks once more for twice as much.
func (f *gatewayClient) measure(ctx context.Context, rows []row, how gatewayOptions) error {
	for i := range rows {
		q := f.query(rows[i])
		first, found, err := f.ask(ctx, q.Text, how.budget)
		if err != nil {
			return err
		}
		if how.show != "" && strings.Contains(q.Text, how.show) {
			fmt.Fprintf(how.out, "## %s %s: %d tokens, gold %q\n%s\n\n", q.Group, q.ID, first, q.Gold, found.Text())
		}
		rows[i].First, rows[i].Until, rows[i].Seen, rows[i].Signed = first, first, f.shows(q, found, false), f.shows(q, found, true)
		if rows[i].Seen || len(q.Gold) == 0 {
			continue
		}
		more, found, err := f.ask(ctx, q.Text, 2*cmp.Or(how.budget, defaultBudget))
		if err != nil {
			return err
		}
		rows[i].Until, rows[i].Seen = first+more, f.shows(q, found, false)
	}
	return nil
}

func (f *gatewayClient) query(r row) ireval.Query {
	return f.set.Queries[slices.IndexFunc(f.set.Queries, func(q ireval.Query) bool { return q.ID == r.ID })]
}

// ask returns the tokens of an answer, and the answer.
func (f *gatewayClient) ask(ctx context.Context, text string, budget int) (int, toolsearch.Found, error) {
	found, err := f.Searcher.Search(ctx, toolsearch.Request{Query: text, Budget: budget})
	if err != nil {
		return 0, found, fmt.Errorf("ask the gateway for %q: %w", text, err)
	}
	n, err := f.counter.Count(found.Text())
	return n, found, err
}

// shows reports whether a gold tool is among those that an answer tells of, with its signature if that is asked for.
func (f *gatewayClient) shows(q ireval.Query, found toolsearch.Found, signed bool) bool {
	return slices.ContainsFunc(found.Tools, func(t toolsearch.FoundTool) bool {
		return q.Answers(f.set.JudgedID(t.ID)) && (!signed || t.Text != "")
	})
}
