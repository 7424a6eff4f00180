package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/execution"
	"sallyport/internal/testutil/golden"
)

// market is an upstream whose results and parameters are as models and servers write them.
func market(s *site) {
	structured := func(v string) func(json.RawMessage) *mcp.CallToolResult {
		return func(json.RawMessage) *mcp.CallToolResult {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: v}}, StructuredContent: json.RawMessage(v)}
		}
	}
	says := func(v string) func(json.RawMessage) *mcp.CallToolResult {
		return func(json.RawMessage) *mcp.CallToolResult { return text(v) }
	}
	wrapped := func(inner string, more string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{"result":` + inner + `},"required":["result"]` + more + `}`)
	}
	s.tool("send_mail", "Send a mail.", `"required":["subject"],"properties":{"subject":{"type":"string"},"ccRecipients":{"type":"array","items":{"type":"string"}},"bccRecipients":{"type":"array","items":{"type":"string"}}}`, echo)
	s.tool("cancel-order", "Cancels.", "", says("ok"))
	s.tool("list_orders", "List orders; cancel-order cancels one, recancel-order and cancel-order-now do not exist.", `"required":["shopId"],"properties":{"shopId":{"type":"integer"},"page":{"type":"number","minimum":1},"perPage":{"type":"number","minimum":1,"maximum":100},"status":{"type":"string"}}`, echo)
	s.add(&mcp.Tool{Name: "get_order", Description: "One order.", OutputSchema: json.RawMessage(`{"type":"object","required":["id","total"],"properties":{"id":{"type":"integer"},"total":{"type":"number"},"customerName":{"type":"string"}}}`)},
		`"required":["id"],"properties":{"id":{"type":"integer"}}`, structured(`{"id":7,"total":12.5,"customerName":"Ada"}`))
	s.add(&mcp.Tool{Name: "count_orders", Description: "How many.", OutputSchema: wrapped(`{"type":"integer"}`, `,"x-fastmcp-wrap-result":true`)}, "", structured(`{"result":200}`))
	s.add(&mcp.Tool{Name: "order_ids", Description: "All ids.", OutputSchema: wrapped(`{"type":"array","items":{"type":"integer"}}`, ``)}, "", structured(`{"result":[3,5,8]}`))
	s.add(&mcp.Tool{Name: "coupon_name", Description: "Its name.", OutputSchema: wrapped(`{"type":"string"}`, ``)}, "", structured(`{"result":"true"}`))
	s.tool("is_open", "Whether the shop is open.", "", says("false"))
	s.tool("find_coupon", "The coupon, or null.", "", says("null"))
	s.tool("zip_code", "The zip code.", "", says("007"))
	s.tool("stock", "How many are in stock.", "", says("0"))
	s.tool("fail", "Fail.", "", func(json.RawMessage) *mcp.CallToolResult {
		r := text("out of order")
		r.IsError = true
		return r
	})
}

var (
	address  = regexp.MustCompile("0x[0-9a-f]{8,}")
	observed = regexp.MustCompile(`-> [^\n]*  # observed \dx`)
)

// TestMistakes runs programs with the mistakes that models make, in both languages. The golden file has what a model
// reads of each.
func TestMistakes(t *testing.T) {
	t.Parallel()
	const path = "testdata/mistakes.txt"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := open(t, withRunsc(t, settings(map[string]*site{"shop": newSite(t, market)})), nil)
	g.Catalog.WaitConnected(t.Context())
	cases := strings.Split(string(data), "\n=== ")[1:]
	answers := make([]string, len(cases))
	var running sync.WaitGroup
	turns := make(chan struct{}, 4)
	for i, c := range cases {
		title, rest, _ := strings.Cut(c, "\n")
		code, _, _ := strings.Cut(rest, "\n--- answer\n")
		language, _, _ := strings.Cut(title, ":")
		running.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			e, err := g.Executor.Execute(t.Context(), execution.Program{Code: code, Language: strings.TrimSpace(language)})
			answer := address.ReplaceAllString(e.Text(), "0x...")
			answer = observed.ReplaceAllString(answer, "-> Any") // by how many programs before it depends on their order
			if err != nil {
				answer = "error: " + err.Error()
			}
			answers[i] = fmt.Sprintf("\n=== %s\n%s\n--- answer\n%s\n", title, code, answer)
		})
	}
	running.Wait()
	var b bytes.Buffer
	b.WriteString(strings.SplitAfter(string(data), "\n")[0])
	for _, answer := range answers {
		b.WriteString(answer)
	}
	if golden.Update() {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(data), b.String()); diff != "" {
		t.Errorf("run go test ./gateway -run Mistakes -update if this is right (-golden +got):\n%s", diff)
	}
}
