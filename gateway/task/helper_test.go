package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/task"
	"sallyport/internal/config"
	"sallyport/internal/models"
	"sallyport/internal/models/modeltest"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	if os.Getenv(serverVar) != "" {
		serve()
		return
	}
	os.Exit(tlstest.M{Tests: m}.Run())
}

// serverVar makes the test binary an upstream with one tool.
const serverVar = "SALLYPORT_TEST_TASK_SERVER"

func serve() {
	s := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`)
	s.AddTool(&mcp.Tool{Name: "echo", Description: "Echo a text.", InputSchema: schema, OutputSchema: schema}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: r.Params.Arguments, Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

// rig is a gateway with two upstreams, a scripted model and tasks.
type rig struct {
	*task.Tasks
	t       *testing.T
	gateway *gateway.Gateway
	model   *modeltest.Server
	cfg     *config.Config
	records *store.Store
	dir     string // the data directory
}

// newRig opens a gateway with a model of this API, which says what reply returns.
func newRig(t *testing.T, api models.API, reply func(modeltest.Turn) string, change ...func(*config.Config)) *rig {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", testutil.ShortDir(t))
	r := &rig{t: t, records: store.Memory(), dir: t.TempDir()}
	cfg := config.Default()
	r.cfg = &cfg
	cfg.Sandbox.Runsc, cfg.Sandbox.Typecheck = testutil.Runsc(t), false
	for _, name := range []string{"up", "other"} {
		cfg.Upstreams = append(cfg.Upstreams, config.Upstream{Name: name, ID: name, Command: self, Timeout: 20 * time.Second, Concurrency: 4, MaxMessage: config.MiB,
			Trust: config.TrustAllow, Env: config.Secrets{serverVar: "1", "GORACE": "atexit_sleep_ms=0"}})
	}
	if reply != nil {
		r.model = modeltest.New(t, api, reply)
		s := r.model.Settings()
		cfg.Models = map[string]config.LanguageModel{"scripted": {API: string(api), URL: s.URL, Model: s.Model, Deployment: s.Deployment, Key: config.Secret(s.Key), Answer: 4096, Timeout: time.Minute, Price: config.ModelPrice(s.Price)}}
	}
	for _, f := range change {
		f(&cfg)
	}
	r.open()
	t.Cleanup(func() {
		_ = r.Close()
		_ = r.gateway.Close()
		_ = r.records.Close()
	})
	return r
}

func (r *rig) open() {
	r.t.Helper()
	var err error
	if r.gateway, err = gateway.Open(r.cfg, &gateway.Options{DataDir: r.dir, Records: r.records, NoPool: true, PeerRequests: true, Snapshots: testutil.Snapshots()}); err != nil {
		r.t.Fatal(err)
	}
	if r.Tasks, err = task.Open(task.Options{Gateway: r.gateway.Service(), Catalog: r.gateway.Catalog, Labels: r.gateway.Guard, Settings: r.gateway.Reloader.Current(), Records: r.records}); err != nil {
		r.t.Fatal(err)
	}
	r.gateway.Catalog.WaitConnected(r.t.Context())
}

// restart closes the gateway and opens another one on its records.
func (r *rig) restart() {
	r.t.Helper()
	if err := errors.Join(r.Close(), r.gateway.Close()); err != nil {
		r.t.Fatal(err)
	}
	r.open()
}

func (r *rig) run(req task.Request) task.Task {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	done, err := r.Run(ctx, req, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return done
}

func kinds(t task.Task) (all []string) {
	for _, one := range t.Turns {
		all = append(all, one.Kind+" "+one.Status)
	}
	return all
}

func block(kind, text string) string { return "```" + kind + "\n" + text + "\n```" }

func raw(text string) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		panic(err)
	}
	return all
}

// peer answers requests of the gateway.
type peer func(method string, params json.RawMessage) (json.RawMessage, error)

func (p peer) Notify(string, json.RawMessage) {}

func (p peer) Ask(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return p(method, params)
}

var _ tool.Peer = peer(nil)
