package catalog

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/gateway/upstream"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// InProcess is an upstream inside this process. Its methods are called concurrently.
type InProcess interface {
	// Offer returns the current offer. Tools need a Wire name, from which their IDs derive, a Description and schemas.
	Offer() tool.Offer
	// Call runs a tool, named as on the wire. It returns soon after ctx ends.
	Call(ctx context.Context, c tool.Call) (tool.Result, error)
}

// Attach adds an in-process upstream to the catalog: its tools are searched, wrapped, called, checked and audited like any
// other's. It is not in the settings, a reload does not change it, and its definitions are not pinned. Call changed when
// its offer changes. Attach fails if the id is invalid, reserved, or used in the settings.
func (c *Catalog) Attach(id, description string, own InProcess) (changed func(), err error) {
	m, err := membership{c}.add(config.Upstream{Name: id, ID: id, Description: description}, own)
	if err != nil {
		return nil, err
	}
	return func() { m.refreshInProcess(c) }, nil
}

func (c membership) add(up config.Upstream, own InProcess) (*member, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	old := c.roster.Load()
	switch {
	case c.Closed():
		return nil, toolcall.ClosedError()
	case tool.Identifier(up.ID) != up.ID || up.ID == toolcall.GatewayID:
		return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("invalid upstream id %.60q", up.ID)}
	case old.byID[up.ID] != nil:
		return nil, idTakenError(up.ID)
	}
	m := newMember(up)
	m.inProcess = own
	m.boot(c.Catalog)
	c.roster.Store(newRoster(append(slices.Clone(old.members), m)))
	membership{c.Catalog}.requestRebuild()
	return m, nil
}

// idTakenError returns the error for an id that both the settings and an in-process upstream use.
func idTakenError(id string) error {
	return &tool.Error{Kind: tool.Invalid, Message: "upstream " + id + " in the settings has the name of a built-in upstream", Hint: "rename it in upstreams.yaml, or take " + id + " out of profiles"}
}

// bootInProcess starts an in-process member.
func (m *member) bootInProcess(c *Catalog) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &inProcessSession{InProcess: m.inProcess, id: m.id, since: time.Now(), ctx: ctx, cancel: cancel}
	m.session = s
	m.tried.Store(true)
	m.fresh.Store(true)
	m.refreshInProcess(c)
	close(m.booted)
}

// refreshInProcess updates the view of an in-process member.
func (m *member) refreshInProcess(c *Catalog) {
	offer := m.inProcess.Offer()
	wires := make([]string, len(offer.Tools))
	for i, t := range offer.Tools {
		wires[i] = t.Wire
	}
	offer.Tools = slices.Clone(offer.Tools)
	named := make(map[string]string, len(wires))
	for i, name := range tool.Identifiers(wires) {
		t := &offer.Tools[i]
		t.ID, t.Raw = tool.ID{Upstream: m.id, Name: name}, definition(*t)
		named[name] = t.Wire
	}
	if s, ok := m.session.(interface{ rename(wires map[string]string) }); ok {
		s.rename(named)
	}
	if (membership{c}).setOffer(m, offer) {
		membership{c}.markStale(m)
	}
}

// definition returns a tool as an upstream would send it, for clients that get raw definitions.
func definition(t tool.Tool) json.RawMessage {
	raw, err := json.Marshal(struct {
		Name        string           `json:"name"`
		Title       string           `json:"title,omitempty"`
		Description string           `json:"description,omitempty"`
		Input       json.RawMessage  `json:"inputSchema"`
		Output      json.RawMessage  `json:"outputSchema,omitempty"`
		Annotations tool.Annotations `json:"annotations"`
	}{t.Wire, t.Title, t.Description, t.Input, t.Output, t.Annotations})
	if err != nil { // a schema is not JSON: the tool cannot be called
		return nil
	}
	return raw
}

// inProcessSession is the session of an in-process upstream. It needs no connection.
type inProcessSession struct {
	InProcess
	id     string
	since  time.Time
	ctx    context.Context //nolint:containedctx // of the session: calls end with it
	cancel context.CancelFunc

	mu    sync.Mutex
	work  sync.WaitGroup
	wires map[string]string // wire names by names in programs
}

// Call runs one call, until the session ends.
func (s *inProcessSession) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	if !s.enter() {
		return tool.Result{}, toolcall.ClosedError()
	}
	defer s.work.Done()
	if c.Tool.Method() != "tools/call" {
		return tool.Result{}, &tool.Error{Kind: tool.Invalid, Message: "upstream " + s.id + " has no " + c.Tool.Name, Hint: "it has tools only"}
	}
	c.Tool.Name = s.wire(c.Tool.Name)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	result, err := s.InProcess.Call(ctx, c)
	if err == nil && result.Raw == nil {
		result.Raw = rawResult(result)
	}
	return result, err
}

// rename sets the wire names by names in programs.
func (s *inProcessSession) rename(wires map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wires = wires
}

func (s *inProcessSession) wire(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.wires[name], name)
}

func (s *inProcessSession) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.work.Add(1)
	return true
}

func (s *inProcessSession) Connect(context.Context) error {
	if s.ctx.Err() != nil {
		return toolcall.ClosedError()
	}
	return nil
}

// Refresh has nothing to do: changes are announced.
func (s *inProcessSession) Refresh(ctx context.Context) error { return s.Connect(ctx) }

func (*inProcessSession) Reset() {}

func (s *inProcessSession) State() upstream.State {
	if s.ctx.Err() != nil {
		return upstream.State{Status: upstream.Closed}
	}
	return upstream.State{Status: upstream.Ready, Since: s.since}
}

// Close cancels the calls in flight, and waits for them. It is idempotent.
func (s *inProcessSession) Close() error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

// rawResult returns a result as an upstream would send it.
func rawResult(r tool.Result) json.RawMessage {
	content := make([]any, 0, len(r.Content))
	for _, c := range r.Content {
		switch {
		case c.Raw != nil:
			content = append(content, c.Raw)
		case c.Data != nil:
			content = append(content, map[string]any{"type": c.Type, "data": base64.StdEncoding.EncodeToString(c.Data), "mimeType": c.MIME})
		default:
			content = append(content, map[string]any{"type": "text", "text": c.Text})
		}
	}
	fields := map[string]any{"content": content}
	if len(r.Structured) > 0 {
		fields["structuredContent"] = r.Structured
	}
	if r.IsError {
		fields["isError"] = true
	}
	raw, err := sanitize.JSON(fields)
	if err != nil {
		return nil
	}
	return raw
}

// Attached reports whether an upstream is in-process.
func (c *Catalog) Attached(id string) bool {
	m := c.roster.Load().byID[id]
	return m != nil && m.inProcess != nil
}
