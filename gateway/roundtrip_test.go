package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/codegen"
	"sallyport/codegen/schematest"
	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// mirror is an upstream that takes every call and keeps what arrived. It writes
// JSON itself, since schemas and arguments must stay as they are to the byte.
type mirror struct {
	tools   []tool.Tool
	mu      sync.Mutex
	arrived []arrival
}

type arrival struct {
	name string
	args any
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&req) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if req.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var result any
	switch req.Method {
	case "initialize":
		result = map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "mirror", "version": "1"}}
	case "tools/list":
		list := []any{}
		for _, t := range m.tools {
			list = append(list, map[string]any{"name": t.Wire, "inputSchema": t.Input})
		}
		result = map[string]any{"tools": list}
	case "tools/call":
		m.mu.Lock()
		m.arrived = append(m.arrived, arrival{req.Params.Name, decode(req.Params.Arguments)})
		m.mu.Unlock()
		result = map[string]any{"content": []any{}}
	}
	w.Header().Set("Content-Type", "application/json")
	if result == nil {
		_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": req.ID, "error": map[string]any{"code": -32601, "message": "no such method"}})
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": result})
}

// take returns what arrived since it was asked last.
func (m *mirror) take() []arrival {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.arrived
	m.arrived = nil
	return list
}

func decode(data []byte) any {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return "no JSON: " + err.Error()
	}
	return v
}

// compile returns the checker of a schema, nil if it cannot be compiled.
func compile(schema any) *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	if c.AddResource("test:///schema", schema) != nil {
		return nil
	}
	s, _ := c.Compile("test:///schema")
	return s
}

// reflect opens a gateway with the tools behind one upstream "up".
func reflect(t *testing.T, tools []tool.Tool) (*gateway.Gateway, *mirror) {
	t.Helper()
	m := &mirror{tools: tools}
	web := tlstest.NewServer(t, m)
	t.Cleanup(web.Close)
	cfg := config.Default()
	cfg.Upstreams = []config.Upstream{upstreamOf("up", web.URL)}
	cfg.Sandbox.Calls, cfg.Sandbox.Output = 100_000, 1<<20
	cfg.Sandbox.Timeout, cfg.Sandbox.Typecheck = 5*time.Minute, false // programs of thousands of lines; what is proved is the check while they run
	g := open(t, withRunsc(t, &cfg), nil)
	g.Catalog.WaitConnected(t.Context())
	return g, m
}

// meant is one call: the tool, its arguments, and what checks them.
type meant struct {
	tool  tool.Tool
	args  map[string]any
	check *jsonschema.Schema
}

// drawTools returns n tools with random schemas.
func drawTools(t *testing.T, n int) []tool.Tool {
	t.Helper()
	var tools []tool.Tool
	for seed := range n {
		input, err := json.Marshal(schematest.New(uint64(seed) + 1000).Tool())
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, toolOf(seed, input))
	}
	return tools
}

// catalogTools returns the tools of the catalogue beside the project, none if there is no such thing.
func catalogTools(t *testing.T) []tool.Tool {
	t.Helper()
	paths, _ := filepath.Glob("../../shared/catalog/*.json")
	var tools []tool.Tool
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct{ InputSchema json.RawMessage }
		}
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatal(err)
		}
		for _, l := range list.Tools {
			tools = append(tools, toolOf(len(tools), l.InputSchema))
		}
	}
	return tools
}

func toolOf(n int, input json.RawMessage) tool.Tool {
	name := fmt.Sprintf("t%d", n)
	return tool.Tool{ID: tool.ID{Upstream: "up", Name: name}, Wire: name, Input: input}
}

// calls makes calls of each tool: some that fit its schema, and some that are
// spoilt and do not.
func calls(tools []tool.Tool, rounds int) (right, wrong []meant) {
	for i, tl := range tools {
		schema, check, g := decode(tl.Input), compile(decode(tl.Input)), schematest.New(uint64(i))
		if check == nil {
			continue
		}
		for range rounds {
			args, ok := g.Value(schema).(map[string]any)
			if !ok || check.Validate(any(args)) != nil {
				continue
			}
			right = append(right, meant{tl, args, check})
			if spoilt, ok := g.Corrupt(args).(map[string]any); ok && check.Validate(any(spoilt)) != nil {
				wrong = append(wrong, meant{tl, spoilt, check})
			}
		}
	}
	return right, wrong
}

const pyStart = `import inspect, json
from servers import up
def call(i, name, wire, args):
    function = getattr(up, name)
    names = dict(zip(wire, inspect.signature(function).parameters))
    try:
        function(**{names.get(name, name): value for name, value in args.items()})
    except Exception as err:
        print(json.dumps([i, str(err)[:300]]))
`

const tsStart = `import * as up from "servers/up";
async function call(i: number, f: any, args: any) {
  try { await f(args); } catch (e: any) { console.log(JSON.stringify([i, e.message.slice(0, 300)])); }
}
`

// program writes calls as a program of a language, with their arguments as literals.
func program(list []meant, lang codegen.Language) string {
	var b strings.Builder
	if lang == codegen.TypeScript {
		b.WriteString(tsStart)
		for i, c := range list {
			fmt.Fprintf(&b, "await call(%d, up.%s, %s);\n", i, c.tool.ID.Name, schematest.TypeScript(c.args))
		}
		return b.String()
	}
	b.WriteString(pyStart)
	for i, c := range list {
		fmt.Fprintf(&b, "call(%d, %q, %s, %s)\n", i, c.tool.ID.Name, schematest.Python(wireNames(c.tool)), schematest.Python(c.args))
	}
	return b.String()
}

// wireNames are a wrapper's parameters in its order.
func wireNames(t tool.Tool) []any {
	var spec struct{ Args struct{ O json.RawMessage } }
	if json.Unmarshal([]byte(codegen.Spec(t, codegen.Python)), &spec) != nil {
		return nil
	}
	names, depth := []any{}, 0
	dec := json.NewDecoder(bytes.NewReader(spec.Args.O))
	for key := true; ; {
		token, err := dec.Token()
		if err != nil {
			return names
		}
		switch delim, ok := token.(json.Delim); {
		case ok && (delim == '{' || delim == '['):
			depth++
		case ok:
			depth--
			key = true
		case depth == 1 && key:
			name := token.(string)
			if strings.HasSuffix(name, "?") || strings.HasSuffix(name, "!") {
				name = name[:len(name)-1]
			}
			names, key = append(names, name), false
		case depth == 1:
			key = true
		}
	}
}

// send runs calls in the sandbox, as few programs as they fit into, since each
// loads all wrappers; it returns the refusals by the number of the call, and how
// many calls left the sandbox.
func send(t *testing.T, g *gateway.Gateway, list []meant, lang codegen.Language) (refused map[int]string, left int) {
	t.Helper()
	refused = map[int]string{}
	for start := 0; start < len(list); start += 2000 {
		part := list[start:min(start+2000, len(list))]
		e, err := g.Executor.Execute(t.Context(), execution.Program{Code: program(part, lang), Language: string(lang)})
		if err != nil || e.Status != sandbox.OK || e.Stdout.Cut > 0 {
			t.Fatalf("%s: %v %s %+v %.2000s", lang, err, e.Status, e.Fault, e.Stderr.Text)
		}
		left += e.Calls
		for line := range strings.Lines(e.Stdout.Text) {
			var row []any
			if err := json.Unmarshal([]byte(line), &row); err != nil || len(row) != 2 {
				t.Fatalf("%s: printed %q", lang, line)
			}
			refused[start+int(row[0].(float64))] = row[1].(string)
		}
	}
	return refused, left
}

// TestArgumentsArriveAsTheyWereMeant calls tools with random schemas, and those
// of the catalogue, through their wrappers in real sandboxes: what fits arrives
// as it was written, and what does not never reaches the upstream.
func TestArgumentsArriveAsTheyWereMeant(t *testing.T) {
	testutil.Long(t)
	for _, test := range []struct {
		name   string
		tools  []tool.Tool
		rounds int
	}{{"random", drawTools(t, 300), 2}, {"catalogue", catalogTools(t), 1}} {
		t.Run(test.name, func(t *testing.T) {
			if len(test.tools) == 0 {
				t.Skip("no ../../shared/catalog beside the project")
			}
			g, m := reflect(t, test.tools)
			right, wrong := calls(test.tools, test.rounds)
			for _, lang := range []codegen.Language{codegen.Python, codegen.TypeScript} {
				arriveUnchanged(t, g, m, right, lang)
				neverArrive(t, g, m, wrong, lang)
			}
		})
	}
}

func arriveUnchanged(t *testing.T, g *gateway.Gateway, m *mirror, list []meant, lang codegen.Language) {
	t.Helper()
	refused, left := send(t, g, list, lang)
	for i, why := range refused {
		t.Errorf("%s: %s refused %s\n%.1500s\n%s", lang, list[i].tool.ID, schematest.Python(list[i].args), list[i].tool.Input, why)
	}
	arrived := m.take()
	if len(arrived) != len(list) || left != len(list) {
		t.Fatalf("%s: %d of %d calls arrived, %d left", lang, len(arrived), len(list), left)
	}
	for i, a := range arrived {
		if a.name != list[i].tool.Wire || !schematest.Equal(a.args, any(list[i].args)) {
			t.Fatalf("%s: %s: meant %s\narrived at %s: %s", lang, list[i].tool.ID, schematest.Python(list[i].args), a.name, schematest.Python(a.args))
		}
	}
}

func neverArrive(t *testing.T, g *gateway.Gateway, m *mirror, list []meant, lang codegen.Language) {
	t.Helper()
	refused, left := send(t, g, list, lang)
	checks := map[string]*jsonschema.Schema{}
	for i, c := range list {
		checks[c.tool.Wire] = c.check
		if why, ok := refused[i]; ok && why == "" {
			t.Errorf("%s: %s: refused without a word", lang, c.tool.ID)
		}
	}
	arrived := m.take()
	for _, a := range arrived { // null for an optional parameter is left out, and then some are right
		if checks[a.name].Validate(a.args) != nil {
			t.Errorf("%s: %s got %s", lang, a.name, schematest.Python(a.args))
		}
	}
	if len(arrived)+len(refused) != len(list) {
		t.Errorf("%s: of %d wrong calls %d were refused and %d arrived", lang, len(list), len(refused), len(arrived))
	}
	wrong := len(list) - len(arrived)
	share := 100 * (wrong - (left - len(arrived))) / max(wrong, 1)
	t.Logf("%s: %d wrong calls, %d %% refused in the sandbox", lang, wrong, share)
	if share < 95 {
		t.Errorf("%s: only %d %% of %d wrong calls were refused in the sandbox", lang, share, wrong)
	}
}
