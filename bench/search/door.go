package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/testutil/judge"
	"sallyport/internal/tokens"
	"sallyport/internal/tool"
)

// door is a real gateway with one upstream over HTTP for each server of a set,
// so that what is counted is what a model reads of search_tools.
type door struct {
	set     *judge.Set
	gateway *gateway.Gateway
	web     *httptest.Server
	counter *tokens.Counter
}

// settleTime is how long the upstreams may take to connect.
const settleTime = time.Minute

func openDoor(ctx context.Context, s *judge.Set) (*door, error) {
	counter, err := tokens.O200k()
	if err != nil {
		return nil, err
	}
	d := &door{set: s, counter: counter}
	mux := http.NewServeMux()
	d.web = httptest.NewServer(mux)
	cfg := config.Default()
	cfg.Search.Learn = false
	for i, up := range upstreams(s) {
		path := fmt.Sprint("/", i)
		mux.Handle(path, up.handler)
		cfg.Upstreams = append(cfg.Upstreams, config.Upstream{
			Name: up.name, ID: tool.Identifier(up.name), Description: up.about, URL: d.web.URL + path, Timeout: settleTime,
		})
	}
	if d.gateway, err = gateway.Open(&cfg, &gateway.Options{Settle: settleTime}); err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.gateway.Settle(ctx)
	if got := len(d.gateway.Tools()); got != len(s.Entries) {
		return nil, errors.Join(fmt.Errorf("the gateway has %d of the %d tools of %s", got, len(s.Entries), s.Name), d.close())
	}
	return d, nil
}

func (d *door) close() (err error) {
	if d.gateway != nil {
		err = d.gateway.Close()
	}
	_ = d.web.Config.Close() // open connections too, which Close alone would wait for
	d.web.Close()
	return err
}

// upstream is one server of a set.
type upstream struct {
	name, about string
	handler     http.Handler
}

// upstreams makes MCP servers that list the tools of a set; nobody calls them.
func upstreams(s *judge.Set) (ups []upstream) {
	servers := map[string]*mcp.Server{}
	for _, e := range s.Entries {
		server := servers[e.Server]
		if server == nil {
			server = mcp.NewServer(&mcp.Implementation{Name: e.Server, Version: "1"}, nil)
			servers[e.Server] = server
			handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
			ups = append(ups, upstream{e.Server, e.About, handler})
		}
		server.AddTool(definition(e.Tool), func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errors.New("only to be found")
		})
	}
	return ups
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

// asking is how the gateway is asked.
type asking struct {
	budget int       // tokens of an answer; 0 is the gateway's default
	show   string    // answers to queries with this text in them are printed
	out    io.Writer // there
}

// defaultBudget is the tokens that an answer of the gateway has unless it is told.
const defaultBudget = 400

// measure fills in what the answers to the rows' queries cost: the tokens of the
// first answer, and those until a gold tool is among the tools that were told of.
// Where the first answer has none, a model asks once more for twice as much.
func (d *door) measure(ctx context.Context, rows []row, how asking) error {
	for i := range rows {
		q := d.query(rows[i])
		first, found, err := d.ask(ctx, q.Text, how.budget)
		if err != nil {
			return err
		}
		if how.show != "" && strings.Contains(q.Text, how.show) {
			fmt.Fprintf(how.out, "## %s %s: %d tokens, gold %q\n%s\n\n", q.Group, q.ID, first, q.Gold, found.Text())
		}
		rows[i].First, rows[i].Until, rows[i].Seen, rows[i].Signed = first, first, d.shows(q, found, false), d.shows(q, found, true)
		if rows[i].Seen || len(q.Gold) == 0 {
			continue
		}
		more, found, err := d.ask(ctx, q.Text, 2*cmp.Or(how.budget, defaultBudget))
		if err != nil {
			return err
		}
		rows[i].Until, rows[i].Seen = first+more, d.shows(q, found, false)
	}
	return nil
}

func (d *door) query(r row) judge.Query {
	return d.set.Queries[slices.IndexFunc(d.set.Queries, func(q judge.Query) bool { return q.ID == r.ID })]
}

// ask returns the tokens of an answer, and the answer.
func (d *door) ask(ctx context.Context, text string, budget int) (int, gateway.Found, error) {
	found, err := d.gateway.Search(ctx, gateway.Search{Query: text, Budget: budget})
	if err != nil {
		return 0, found, fmt.Errorf("ask the gateway for %q: %w", text, err)
	}
	n, err := d.counter.Count(found.Text())
	return n, found, err
}

// shows reports whether a gold tool is among those that an answer tells of, with its signature if that is asked for.
func (d *door) shows(q judge.Query, found gateway.Found, signed bool) bool {
	return slices.ContainsFunc(found.Tools, func(t gateway.FoundTool) bool {
		return q.Answers(d.set.Judged(t.ID)) && (!signed || t.Text != "")
	})
}
