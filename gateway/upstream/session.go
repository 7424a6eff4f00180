// Package upstream holds one live session to one upstream: it connects over
// stdio or streamable HTTP, lists the tools, calls them, notices when the
// upstream dies, and connects again when it is next needed. Its main type is
// [Session]. Every byte that an upstream sends is untrusted; nothing that one
// upstream does affects more than calls to it.
//
// From the outside in:
//   - session.go and loop.go decide when to connect, backoff.go how long to wait after
//     a failure, queue.go how many calls run at once and when an idle upstream stops;
//   - link.go is one connection from handshake to end; probe.go detects the protocol's
//     revision, and wire.go sends our requests next to those of the SDK;
//   - its transport is package process (which also kills the process group if the
//     gateway is killed), or httpbase.go, stream.go, sse.go and authorize.go;
//   - call.go and headers.go encode a call, retry.go decides whether it may be sent
//     twice, errors.go builds the errors for the caller, redactor.go hides secrets;
//   - list.go and offer.go read the offer, result.go the results;
//   - progress.go, intercept.go, peerrequests.go, inputrequired.go, task.go and listen.go
//     handle an upstream's notifications, requests and tasks, and forward them to the call
//     that they belong to.
package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/sync/semaphore"

	"sallyport/gateway/upstream/backoff"
	"sallyport/gateway/upstream/budget"
	"sallyport/gateway/upstream/commandtools"
	"sallyport/gateway/upstream/process"
	"sallyport/gateway/upstream/serial"
	"sallyport/gateway/upstream/subscription"
	"sallyport/internal/config"
	"sallyport/internal/redact"
	"sallyport/internal/tool"
)

// Settings say how to reach one upstream: over stdio if Command is set, over
// streamable HTTP if URL is set; exactly one of them must be. Zero limits mean the
// defaults: 60 s per call, 32 concurrent calls, 64 MiB per message. With a Problem
// the session never connects: it is Parked with that reason. Description, Trust,
// Privacy and labels are not used here.
type Settings = config.Upstream

// Authorizer provides the access token of HTTP requests, and gets a new one when
// the server refuses it.
type Authorizer = auth.OAuthHandler

// Isolate starts processes in sandboxes.
type Isolate = commandtools.Isolate

// Single decides which gateway runs the process of an upstream with instances: one.
type Single interface {
	// Join returns a connection to the gateway that runs the process. It is nil if this gateway does, until lost is closed.
	Join(ctx context.Context, id string) (there io.ReadWriteCloser, lost <-chan struct{}, err error)
	// Leave lets another gateway run the process, as this one cannot start it.
	Leave(ctx context.Context, id string)
}

// Options configure a [Session]. The zero value is usable.
type Options struct {
	// Logger gets what an operator should know, never arguments, results or
	// secrets; nil discards it. It should name the upstream already.
	Logger *slog.Logger
	// OnOffer is called after the first list and after each one that differs
	// from the last, always from the same goroutine and before the Connect that
	// caused it returns. The session waits for it: it must not Connect, Call or Close.
	OnOffer func(offer tool.Offer)
	// Known is the cached offer of the upstream; nil is none. The session returns
	// it until it has connected.
	Known *tool.Offer
	// Auth authorizes requests over HTTP; nil sends them unchanged.
	Auth Authorizer
	// Renew returns the settings with the secrets that are valid now, before each attempt to connect; nil keeps those of New.
	Renew func(ctx context.Context, s Settings) (Settings, error)
	// Asks declares that calls may have a [tool.Peer] that handles requests
	// (elicitation, sampling, roots). Some upstreams then offer other tools.
	Asks bool
	// NoRoots excludes roots from these requests.
	NoRoots bool
	// OnNotice is called with notifications that belong to no call: that a
	// resource was updated or an elicitation completed, and log messages outside of
	// a call. It is called from any goroutine and must not block.
	OnNotice func(method string, params json.RawMessage)
	// ConnectTimeout bounds one attempt to connect, from the start of the process
	// to the last page of the tool list; 0 means 30 s.
	ConnectTimeout time.Duration
	// ProbeTimeout is how long an upstream that has read server/discover may stay
	// silent before it is taken for one that knows only initialize; 0 means 3 s.
	ProbeTimeout time.Duration
	// Version is the gateway's own, as the upstream sees it; "" means "dev".
	Version string
	// Secrets are redacted in everything that the upstream sends, in addition to those in the
	// settings; tokens in use are added to it. nil is none.
	Secrets *redact.Book
	// Isolate starts the process of an upstream with Settings.Isolate, in a sandbox; nil refuses to start it.
	Isolate Isolate
	// Single is for upstreams that run once for all gateways of a store; nil runs them here.
	Single Single
	// Budget bounds the memory of large messages of all sessions that share it; nil gives the session its own.
	Budget *budget.Budget
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnOffer == nil {
		o.OnOffer = func(tool.Offer) {}
	}
	if o.OnNotice == nil {
		o.OnNotice = func(string, json.RawMessage) {}
	}
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = 30 * time.Second
	}
	if o.ProbeTimeout <= 0 {
		o.ProbeTimeout = 3 * time.Second
	}
	if o.Budget == nil {
		o.Budget = budget.New(0)
	}
	o.Budget = o.Budget.Share()
	if o.Version == "" {
		o.Version = "dev"
	}
	return o
}

// Status is the state of a session's connection.
type Status string

// The states of a session.
const (
	// Idle: not connected, or stopped for lack of calls; the next Call connects.
	Idle Status = "idle"
	// Connecting: an attempt is in progress.
	Connecting Status = "connecting"
	// Ready: connected.
	Ready Status = "ready"
	// Failed: the last attempt failed, or the connection was lost. The next Call tries again.
	Failed Status = "failed"
	// Parked: it failed too often, or requires an authorization that is missing.
	// Calls fail at once, with the reason, except for occasional retries.
	Parked Status = "parked"
	// Closed: Close was called. It is final.
	Closed Status = "closed"
)

// State is a snapshot of a session. All text in it is bounded, and cleaned of
// control characters and of the values of the settings' environment and headers.
type State struct {
	Status Status
	// Since is when Status last changed.
	Since time.Time
	// Error says why the session is Failed or Parked, "" otherwise.
	Error string
	// Login reports whether it is Parked until a user logs in.
	Login bool
	// RetryAt is the end of the time in which calls fail at once; zero if there is none.
	RetryAt time.Time
	// ServerName, ServerVersion and Protocol are those of the last connection.
	ServerName    string
	ServerVersion string
	Protocol      string
	// Tools is the number of known tools.
	Tools int
	// PID is the process of a stdio upstream, 0 if none runs.
	PID int
	// Stderr is the end of the process's stderr, at most 8 KiB.
	Stderr string
}

// Session is one live session to one upstream. It is safe for concurrent use.
type Session struct {
	settings      Settings
	opts          Options
	log           *slog.Logger
	redactor      redactor
	dialer        *dialer
	serializer    serial.Gate
	subscriptions *subscription.Set

	wake         chan struct{} // requests an attempt; capacity 1
	changed      *changes      // the lists that the upstream reported as changed
	closing      sync.Once
	closingLinks sync.WaitGroup // lost links that are being closed

	created  time.Time
	slots    *semaphore.Weighted // limits the calls in flight
	users    atomic.Int64        // callers that wait or have a call in flight
	lastUsed atomic.Int64        // when the last of them left, in ns since the session was made

	mu      sync.Mutex
	state   State
	link    *link    // nil unless connected
	attempt *attempt // nil unless one is requested or in progress
	catalog catalog
	backoff backoff.Backoff
	cancel  context.CancelFunc // ends the loop; nil before the first attempt
	stopped chan struct{}      // closed when the loop has ended
}

// New returns a session that is not connected yet. A nil opts means the zero Options.
func New(settings Settings, opts *Options) *Session {
	if opts == nil {
		opts = &Options{}
	}
	if settings.Timeout <= 0 {
		settings.Timeout = 60 * time.Second
	}
	if settings.Concurrency <= 0 {
		settings.Concurrency = defaultConcurrency
	}
	if settings.MaxMessage <= 0 {
		settings.MaxMessage = defaultMaxMessage
	}
	if settings.Eager {
		settings.Idle = 0
	}
	s := &Session{
		settings:      settings,
		opts:          opts.withDefaults(),
		redactor:      newRedactor(settings, opts.Secrets),
		wake:          make(chan struct{}, 1),
		changed:       newChanges(),
		subscriptions: subscription.New(),
		stopped:       make(chan struct{}),
		state:         State{Status: Idle, Since: time.Now()},
		created:       time.Now(),
		slots:         semaphore.NewWeighted(int64(settings.Concurrency)),
	}
	s.log = s.opts.Logger
	s.catalog.prime(s.opts.Known)
	if settings.Problem != "" {
		s.state.Status, s.state.Error = Parked, s.problemError().Message
	}
	s.dialer = newDialer(s)
	return s
}

// Connect connects and lists the offer; it does nothing if the session is ready.
// Concurrent callers share one attempt, which continues if ctx ends. After a
// failure it fails at once, with the same reason, until [State].RetryAt.
func (s *Session) Connect(ctx context.Context) error {
	queue{s}.use()
	defer queue{s}.unuse()
	_, err := s.liveLink(ctx)
	return err
}

// Tools returns the last known list, sorted by ID, also without a connection.
// The caller may keep the slice but must not modify the schemas.
func (s *Session) Tools() []tool.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.catalog.offer.Tools)
}

// Offer returns the last known offer of the upstream, also without a
// connection. The caller must not modify its contents.
func (s *Session) Offer() tool.Offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.catalog.clone()
}

// Call calls the tool with that tool.ID.Name, or the method in its place (see
// [tool.Call]), connecting first if needed. The arguments are a JSON object, or
// empty for none. A tool's isError is not an error of Call: see [tool.Result].
// Errors are *tool.Error. A call that loses its connection is repeated once if
// the tool is declared read-only or idempotent, never otherwise.
func (s *Session) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if _, err := objectOf(call.Args); err != nil {
		return tool.Result{}, err
	}
	if err := (queue{s}).enter(ctx); err != nil {
		return tool.Result{}, err
	}
	defer queue{s}.leave()
	l, err := s.liveLink(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	return s.callOn(ctx, l, call)
}

// State returns the current state of the session.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state
	state.Login = state.Status == Parked && s.backoff.Login && !hasKey(s.settings)
	state.Tools = len(s.catalog.offer.Tools)
	if state.RetryAt = s.backoff.Until; !time.Now().Before(state.RetryAt) {
		state.RetryAt = time.Time{}
	}
	if p := s.dialer.process.Load(); p != nil {
		state.PID, state.Stderr = p.Pid(), s.redactor.text(p.Stderr.Tail(), process.StderrKept)
	}
	return state
}

// StderrSince returns the complete lines that the process wrote to stderr after the position of an earlier call, "" for all that are
// kept, without secrets; next is the position after them. A position in another process is the beginning of this one.
func (s *Session) StderrSince(after string) (lines, next string) {
	p := s.dialer.process.Load()
	if p == nil {
		return "", after
	}
	var pid int
	var at int64
	if n, _ := fmt.Sscanf(after, "%d.%d", &pid, &at); n != 2 || pid != p.Pid() {
		at = 0
	}
	old, fresh, at := p.Stderr.Since(at)
	shown, all := s.redactor.clean(old), s.redactor.clean(old+fresh) // together, as a secret may begin in the old lines
	for !strings.HasPrefix(all, shown) {
		shown = shown[:len(shown)-1]
	}
	return strings.Trim(all[len(shown):], "\n"), fmt.Sprintf("%d.%d", p.Pid(), at)
}

// Close ends the session and everything that it started: within 2 s no process
// of the upstream's group is left. Calls in flight fail. It is idempotent, and
// every caller waits until it is done.
func (s *Session) Close() error {
	s.closing.Do(func() {
		s.mu.Lock()
		s.setStatus(Closed, "")
		cancel := s.cancel
		s.mu.Unlock()
		if cancel == nil {
			return // never connected
		}
		cancel()
		s.closeLink() // at once, without waiting for the loop
		<-s.stopped
		s.closeLink() // one that the loop has opened
		s.closingLinks.Wait()
	})
	return nil
}

func (s *Session) closeLink() {
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// setStatus is called with mu held. Closed is final.
func (s *Session) setStatus(status Status, reason string) {
	if s.state.Status == Closed {
		return
	}
	s.state.Status, s.state.Error, s.state.Since = status, reason, time.Now()
}
