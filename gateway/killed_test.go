package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/internal/journal"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// register is an upstream that counts what was done, by tool and key.
type register struct {
	*site
	mu   sync.Mutex
	done map[string]int
}

func newRegister(t *testing.T) *register {
	t.Helper()
	l := &register{done: map[string]int{}}
	const schema = `"properties":{"key":{"type":"string"}}`
	l.site = newSite(t, func(s *site) {
		s.tool("pay", "Pay.", schema, l.count("pay"))
		s.add(&mcp.Tool{Name: "look", Description: "Look.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, schema, l.count("look"))
	})
	return l
}

func (l *register) count(name string) func(json.RawMessage) *mcp.CallToolResult {
	return func(args json.RawMessage) *mcp.CallToolResult {
		l.add(name + string(args))
		return text("ok")
	}
}

func (l *register) add(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[what]++
}

// step is one call of the program that is killed.
type step struct{ tool, args string }

func (s step) call() tool.Call {
	return tool.Call{Tool: tool.ID{Upstream: "bank", Name: s.tool}, Args: json.RawMessage(s.args)}
}

// killing is a program that was killed after so many writes of its journal: it begins and ends each call.
type killing struct {
	id     string
	steps  []step
	writes int
	done   bool // the upstream did the call that was in flight
}

// killings are all moments, each with a program of its own.
func killings() (all []killing) {
	const calls = 4
	for writes := range 2*calls + 3 {
		for _, done := range []bool{false, true} {
			if inFlight := writes%2 == 1 && writes < 2*calls; !inFlight && done {
				continue
			}
			k := killing{id: fmt.Sprintf("e-killed%02d%v", writes, done), writes: writes, done: done}
			for i, name := range []string{"pay", "look", "pay", "pay"} {
				k.steps = append(k.steps, step{name, fmt.Sprintf(`{"key":"%s-%d"}`, k.id, i)})
			}
			all = append(all, k)
		}
	}
	return all
}

// write leaves the journal that the killed process had.
func (k killing) write(t *testing.T, g *gateway.Gateway, l *register) {
	t.Helper()
	header := journal.Header{ID: k.id, Root: k.id, Principal: "ada", Started: time.Now(), Program: []byte(fmt.Sprintf(`{"code":%q,"language":"python"}`, k.id))}
	w, err := journal.Create(g.History.Folder("ada"), header, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var writes []func() error
	for i, s := range k.steps {
		made := g.Replay.Attempt(s.call())
		writes = append(writes, func() error {
			if k.done || 2*i+1 < k.writes {
				l.add(s.tool + s.args)
			}
			_, err := w.Begin(journal.Start{Tool: made.Tool, Definition: made.Definition, Arguments: made.Arguments, Sync: true})
			return err
		}, func() error {
			return w.End(i+1, tool.Result{Content: []tool.Content{{Type: "text", Text: "ok"}}}, nil)
		})
	}
	writes = append(writes, func() error {
		return w.EndProgram([]byte(fmt.Sprintf(`{"record":{"id":%q,"principal":"ada","status":"ok","made":4}}`, k.id)))
	}, w.SettleSuccess)
	for _, write := range writes[:k.writes] {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestKilledAtEachRecord: a program is killed at each write of its journal. A gateway that opens what is left resumes it: each call is
// made once, and a person is asked only about one that was in flight and must not be made twice.
func TestKilledAtEachRecord(t *testing.T) {
	t.Parallel()
	l, dir, records := newRegister(t), t.TempDir(), store.Memory()
	programs := map[string]gateway.GoProgram{}
	for _, k := range killings() {
		programs[k.id] = func(ctx context.Context, call func(context.Context, string, string) (tool.Result, error)) error {
			for _, s := range k.steps {
				if _, err := call(ctx, "bank."+s.tool, s.args); err != nil {
					return err
				}
			}
			return nil
		}
	}
	cfg := settings(map[string]*site{"bank": l.site})
	cfg.Approval.Wait = time.Millisecond
	start := func() *gateway.Gateway {
		g := open(t, cfg, (&gateway.Options{DataDir: dir, Records: records, NoPool: true}).InProcess(programs))
		g.Catalog.WaitConnected(t.Context())
		return g
	}
	before := start()
	for _, k := range killings() {
		k.write(t, before, l)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	g := start()
	for _, k := range killings() {
		t.Run(k.id, func(t *testing.T) { k.resume(t, g, l) })
	}
}

// resume has the program resumed until it has ended, by a person who knows what was done.
func (k killing) resume(t *testing.T, g *gateway.Gateway, l *register) {
	t.Helper()
	ctx := tool.WithPrincipal(t.Context(), "ada")
	e, err := g.Executor.Execute(ctx, execution.Program{Resume: k.id})
	if err != nil {
		t.Fatal(err)
	}
	doubtful := k.writes%2 == 1 && k.writes < 2*len(k.steps) && k.steps[k.writes/2].tool == "pay"
	if (e.Status == execution.Held) != doubtful {
		t.Fatalf("it is %s: %s", e.Status, e.Text())
	}
	if doubtful {
		answer := approvals.Answer{By: "bo", Allow: !k.done, Done: k.done}
		if _, err := g.Approver.Answer(tool.WithOperator(ctx, "bo"), e.Approvals[0].ID, answer); err != nil {
			t.Fatal(err)
		}
		if e, err = g.Executor.Execute(ctx, execution.Program{Resume: e.ID}); err != nil {
			t.Fatal(err)
		}
	}
	if e.Status != sandbox.OK {
		t.Errorf("it is %s: %s", e.Status, e.Text())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range k.steps {
		if n := l.done[s.tool+s.args]; n != 1 && (s.tool == "pay" || n == 0) {
			t.Errorf("%s%s was done %d times", s.tool, s.args, n)
		}
	}
}
