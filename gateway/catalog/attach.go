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

// InProcess is an upstream of this process. Its methods are called concurrently.
type InProcess interface {
	// Offer is what there is now. Tools need a Wire name, which their IDs derive from, a Description and schemas.
	Offer() tool.Offer
	// Call runs a tool, named as on the wire. It ends soon after ctx does.
	Call(ctx context.Context, c tool.Call) (tool.Result, error)
}

// Attach puts an upstream of this process into the catalog: its tools are found, wrapped, called, judged and put on record as
// any other's. The settings do not have it, and a reload does not change it; nothing of it is pinned. Call changed when
// it offers something else. The error is for an id that is none, that the settings use, or that is ours.
func (c *Catalog) Attach(id, description string, own InProcess) (changed func(), err error) {
	m, err := membership{c}.add(config.Upstream{Name: id, ID: id, Description: description}, own)
	if err != nil {
		return nil, err
	}
	return func() { m.offerOwn(c) }, nil
}

func (c membership) add(up config.Upstream, own InProcess) (*member, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	old := c.roster.Load()
	switch {
	case c.Closed():
		return nil, toolcall.ClosedError()
	case tool.Identifier(up.ID) != up.ID || up.ID == toolcall.GatewayID:
		return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%.60q is no id for an upstream", up.ID)}
	case old.byID[up.ID] != nil:
		return nil, idTaken(up.ID)
	}
	m := newMember(up)
	m.own = own
	m.boot(c.Catalog)
	c.roster.Store(newRoster(append(slices.Clone(old.members), m)))
	membership{c.Catalog}.touch()
	return m, nil
}

// idTaken is the error where the settings and this process want one id.
func idTaken(id string) error {
	return &tool.Error{Kind: tool.Invalid, Message: "the upstream " + id + " in the settings has the name of what sallyport offers itself", Hint: "rename it in upstreams.yaml, or take " + id + " out of profiles"}
}

// bootOwn starts a member of this process.
func (m *member) bootOwn(c *Catalog) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &ownSession{InProcess: m.own, id: m.id, since: time.Now(), ctx: ctx, cancel: cancel}
	m.session = s
	m.tried.Store(true)
	m.fresh.Store(true)
	m.offerOwn(c)
	close(m.booted)
}

// offerOwn looks at what a member of this process offers.
func (m *member) offerOwn(c *Catalog) {
	offer := m.own.Offer()
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
	if s, ok := m.session.(*ownSession); ok {
		s.rename(named)
	}
	if (membership{c}).take(m, offer) {
		membership{c}.show(m)
	}
}

// definition is a tool as an upstream would have sent it, for clients that get definitions as they are.
func definition(t tool.Tool) json.RawMessage {
	raw, err := json.Marshal(struct {
		Name        string           `json:"name"`
		Title       string           `json:"title,omitempty"`
		Description string           `json:"description,omitempty"`
		Input       json.RawMessage  `json:"inputSchema"`
		Output      json.RawMessage  `json:"outputSchema,omitempty"`
		Annotations tool.Annotations `json:"annotations"`
	}{t.Wire, t.Title, t.Description, t.Input, t.Output, t.Annotations})
	if err != nil { // a schema that is no JSON, which nobody can call
		return nil
	}
	return raw
}

// ownSession is the session of an upstream of this process: there is nothing to connect to.
type ownSession struct {
	InProcess
	id     string
	since  time.Time
	ctx    context.Context //nolint:containedctx // of the session: calls end with it
	cancel context.CancelFunc

	mu    sync.Mutex
	work  sync.WaitGroup
	wires map[string]string // names on the wire by those in programs
}

// Call runs one call, until the session ends.
func (s *ownSession) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
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
		result.Raw = asSent(result)
	}
	return result, err
}

// rename says what tools are called in programs.
func (s *ownSession) rename(wires map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wires = wires
}

func (s *ownSession) wire(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.wires[name], name)
}

func (s *ownSession) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.work.Add(1)
	return true
}

func (s *ownSession) Connect(context.Context) error {
	if s.ctx.Err() != nil {
		return toolcall.ClosedError()
	}
	return nil
}

// Refresh has nothing to do: changes are announced.
func (s *ownSession) Refresh(ctx context.Context) error { return s.Connect(ctx) }

func (*ownSession) Reset() {}

func (s *ownSession) State() upstream.State {
	if s.ctx.Err() != nil {
		return upstream.State{Status: upstream.Closed}
	}
	return upstream.State{Status: upstream.Ready, Since: s.since}
}

// Close ends the calls under way, and waits for them. It is idempotent.
func (s *ownSession) Close() error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

// asSent is a result as an upstream would have sent it.
func asSent(r tool.Result) json.RawMessage {
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

// Attached reports whether an upstream is one of this process.
func (c *Catalog) Attached(id string) bool {
	m := c.roster.Load().byID[id]
	return m != nil && m.own != nil
}
