package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

const (
	// modern is the first revision without initialize and sessions.
	modern = "2026-07-28"
	// legacy is the last one with them.
	legacy = "2025-11-25"
)

// carrier is what a connection runs on: a process or an HTTP client.
type carrier struct {
	conn mcp.Connection
	// stop ends it, politely first, within 2 s. It is called once.
	stop func()
	// release, if there is one, gives back what stop may leave once nobody uses it any more.
	release func()
	// listen, if there is one, hears what the server says unasked, until ctx ends.
	listen func(ctx context.Context, w *wire)
	// settled, if there is one, is told the revision that initialize settled.
	settled func(version string)
}

// dialer makes links. Only the session's loop uses it.
type dialer struct {
	settings Settings
	opts     Options
	log      *slog.Logger
	veil     veil
	onChange func(parts)
	// pinned is set for good once the upstream turned out to hang on server/discover.
	pinned bool
	// process is the last one started, nil for HTTP.
	process atomic.Pointer[process]
}

func newDialer(s *Session) *dialer {
	return &dialer{settings: s.settings, opts: s.opts, log: s.log, veil: s.veil, onChange: s.changed.add}
}

// dial connects and lists what the upstream offers. Nothing is left open after an error.
func (d *dialer) dial(ctx context.Context) (*link, harvest, error) {
	l, err := d.open(ctx)
	if errors.Is(err, errStuck) {
		d.log.Warn("upstream hangs on server/discover, starting it again without")
		d.pinned = true
		l, err = d.open(ctx)
	}
	if err != nil {
		return nil, harvest{}, err
	}
	listed, err := l.list(ctx, allParts)
	if err != nil {
		l.close()
		return nil, harvest{}, err
	}
	return l, listed, nil
}

// open starts what the link runs on and shakes hands.
func (d *dialer) open(ctx context.Context) (*link, error) {
	c, err := d.carrier(ctx)
	if err != nil {
		return nil, err
	}
	l := &link{wire: newWire(c, d), carrier: c, settings: d.settings, log: d.log, born: time.Now(), patience: d.opts.ConnectTimeout / 3}
	l.sdk, err = d.client().Connect(ctx, l.wire, d.pin())
	if err != nil {
		if why := l.wire.reason(); why != nil && !errors.Is(why, errClosed) { // after a failure the SDK closes
			err = why
		}
		l.close()
		return nil, err
	}
	l.wire.hear()
	l.note(l.sdk.InitializeResult(), d.implementation())
	if c.listen != nil && l.protocol < modern {
		l.wire.background(func(ctx context.Context) { c.listen(ctx, l.wire) })
	}
	return l, nil
}

func (d *dialer) carrier(ctx context.Context) (*carrier, error) {
	switch {
	case d.settings.Command != "" && d.settings.URL == "":
		p, err := start(ctx, d.settings)
		if err != nil {
			return nil, err
		}
		d.process.Store(p)
		return &carrier{conn: newPipe(p, d.log, d.veil), stop: p.stop}, nil
	case d.settings.URL != "" && d.settings.Command == "":
		return dialHTTP(d.settings)
	}
	return nil, &tool.Error{Kind: tool.Invalid, Message: "it needs either a command or a url"}
}

func (d *dialer) client() *mcp.Client {
	return mcp.NewClient(d.implementation(), &mcp.ClientOptions{
		Logger: slog.New(slog.DiscardHandler), // it would log an upstream's text as it is
		// No roots, sampling or elicitation: what is not declared is not asked for.
		Capabilities:   &mcp.ClientCapabilities{},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		// Makes the SDK subscribe; the wire hears the notification before it.
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {},
	})
}

func (d *dialer) implementation() *mcp.Implementation {
	return &mcp.Implementation{Name: "sallyport", Version: d.opts.Version}
}

func (d *dialer) pin() *mcp.ClientSessionOptions {
	if d.pinned {
		return &mcp.ClientSessionOptions{ProtocolVersion: legacy}
	}
	return nil
}

// link is one connection, from the handshake to its end. It is safe for concurrent use.
type link struct {
	wire     *wire
	carrier  *carrier
	sdk      *mcp.ClientSession // nil if the handshake failed
	settings Settings
	log      *slog.Logger
	born     time.Time
	patience time.Duration // with lists that it can do without
	served   atomic.Bool   // a call has succeeded
	closing  sync.Once

	// What the handshake told; name and version are cleaned.
	name, version, protocol string
	server                  tool.Server
	capabilities            map[string]json.RawMessage // of the server
	// meta goes into every request from revision 2026-07-28 on; nil before.
	meta json.RawMessage
}

func (l *link) note(init *mcp.InitializeResult, self *mcp.Implementation) {
	l.protocol = init.ProtocolVersion
	if info := init.ServerInfo; info != nil {
		l.name, l.version = plain.Line(info.Name, 100), plain.Line(info.Version, 50)
	}
	raw := l.wire.handshake()
	l.server = tool.Server{
		Name: l.name, Version: l.version, Protocol: l.protocol,
		Instructions: cut(init.Instructions, maxInstructions), Capabilities: member(raw, "capabilities"),
	}
	l.capabilities = members(l.server.Capabilities)
	if l.protocol >= modern {
		l.meta, _ = json.Marshal(map[string]any{ // strings only, cannot fail
			mcp.MetaKeyProtocolVersion:    l.protocol,
			mcp.MetaKeyClientInfo:         self,
			mcp.MetaKeyClientCapabilities: struct{}{},
		})
	}
}

func (l *link) alive() bool {
	select {
	case <-l.wire.dead:
		return false
	default:
		return true
	}
}

// proven reports whether the link was of use, so that its end is no reason to wait before the next.
func (l *link) proven() bool { return l.served.Load() || time.Since(l.born) > steady }

// call asks for one run of a tool and returns the result as it was sent.
func (l *link) call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	return l.request(ctx, "tools/call", struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      json.RawMessage `json:"_meta,omitempty"`
	}{name, args, l.meta})
}

// page asks for one page of a list; the first if cursor is nil.
func (l *link) page(ctx context.Context, method string, cursor *string) (json.RawMessage, error) {
	return l.request(ctx, method, struct {
		Cursor *string         `json:"cursor,omitempty"`
		Meta   json.RawMessage `json:"_meta,omitempty"`
	}{cursor, l.meta})
}

func (l *link) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	data, err := marshal(params)
	if err != nil {
		return nil, err
	}
	return l.wire.request(ctx, method, data)
}

// close ends the link and waits until nothing of it is left, at most 2 s. It is idempotent.
func (l *link) close() {
	l.closing.Do(func() {
		l.wire.fail(errClosed)
		polite := make(chan struct{})
		go func() { // ends because the wire is closed below
			defer close(polite)
			if l.sdk != nil {
				_ = l.sdk.Close()
			}
		}()
		l.carrier.stop()
		l.wire.shut()
		<-polite
		if l.carrier.release != nil {
			l.carrier.release()
		}
	})
}
