package remote

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// WorkerOptions configure a worker.
type WorkerOptions struct {
	// Version is this side's, for messages.
	Version string
	// Host configures its sandboxes. The gateway adds the pool, the idle time of sessions, and masked paths.
	Host sandbox.Options
	// Spool is the folder for workspace files while a program runs; "" is the system's temporary folder.
	Spool string
	// Services are programs that a gateway can start by name, each in a sandbox of its own: type checkers. IDs are set when they start.
	Services map[string]sandbox.Service
	// Extend returns an environment of Host.Environments with more packages, which it adds if necessary, until ctx ends. What it is asked for
	// is untrusted. Errors that gateways may read are *AddError; nil: no packages can be added.
	Extend func(ctx context.Context, added sandbox.Added) (Extended, error)
	// Begin, if set, is called before each program, which its error refuses. The function that it returns is called when the
	// gateway has the outcome.
	Begin func() (end func(), err error)
}

// worker serves one gateway over one stream, with a host of its own.
type worker struct {
	opts  WorkerOptions
	host  *sandbox.Host
	log   *slog.Logger
	wire  *wire
	tasks sync.WaitGroup
	// serving counts the services that run, served those that were started.
	serving, served atomic.Int64

	mu       sync.Mutex // guards the rest
	contents map[string][]byte
	extended map[string]string // keys of environments with added packages in the host, by digest
}

// ServeWorker serves one gateway until the stream or ctx ends. It returns when everything that it
// started has ended. If this machine cannot run sandboxes, it tells the gateway and returns that error.
func ServeWorker(ctx context.Context, stream io.ReadWriteCloser, opts WorkerOptions) error {
	w := &worker{opts: opts, log: opts.Host.Logger, wire: newWire(bufio.NewReaderSize(stream, maxHello), stream)}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	defer func() { _ = w.wire.Close() }()
	defer context.AfterFunc(ctx, func() { _ = w.wire.Close() })()
	there, err := w.greet()
	if err != nil {
		return fmt.Errorf("greet the gateway: %w", err)
	}
	w.host, err = w.openHost(there)
	ready := readiness{}
	if err != nil {
		ready.Error = err.Error()
	}
	if lineErr := writeLine(w.wire, ready); err != nil || lineErr != nil {
		if w.host != nil {
			err = errors.Join(err, w.host.Close())
		}
		return errors.Join(err, lineErr)
	}
	w.log.InfoContext(ctx, "serving a gateway", "version", there.Version)
	w.serve()
	return w.host.Close()
}

func (w *worker) greet() (there greeting, err error) {
	guest, err := digest(w.opts.Host.Guest)
	if err != nil {
		return there, err
	}
	here := greeting{Sallyport: "worker", Compat: Here(), Version: w.opts.Version, Guest: guest, Services: w.opts.services(), Environments: slices.Sorted(maps.Keys(w.opts.Host.Environments))}
	if err := writeLine(w.wire, here); err != nil {
		return there, err
	}
	ahead, ok := w.wire.Reader.(*bufio.Reader)
	if !ok {
		return there, errors.New("the wire cannot be read ahead")
	}
	if err := readLine(ahead, `{"sallyport":"gateway",`, &there); err != nil {
		return there, err
	}
	sent, err := here.agree(there)
	if err == nil && sent {
		w.opts.Host.Guest, err = readGuest(ahead, there.Guest)
	}
	return there, err
}

func (w *worker) openHost(there greeting) (*sandbox.Host, error) {
	opts := w.opts.Host
	if there.Settings != nil {
		opts.Pool, opts.SessionIdle = there.Settings.Pool, there.Settings.SessionIdle
		opts.Parallel = cmp.Or(there.Settings.Parallel, opts.Parallel)
		opts.Masked = append(opts.Masked, there.Settings.Masked...)
		opts.Reuse = there.Settings.Reuse
	}
	return sandbox.New(opts)
}

// serve answers requests until the wire is closed.
func (w *worker) serve() {
	mux := http.NewServeMux()
	for path, handle := range map[string]http.HandlerFunc{
		pathRun: w.run, pathPublish: w.publish, pathWarm: w.warm, pathWaiting: w.waiting, pathChecks: w.checks, pathService + "{name}": w.service, pathPackages: w.packages,
	} {
		mux.HandleFunc("POST "+path, func(rw http.ResponseWriter, r *http.Request) {
			w.tasks.Add(1)
			defer w.tasks.Done()
			handle(rw, r)
		})
	}
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: mux, Protocols: protocols, ErrorLog: slog.NewLogLogger(w.log.Handler(), slog.LevelDebug), ReadHeaderTimeout: connectLimit,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 4096, MaxReceiveBufferPerStream: maxWindow, MaxReceiveBufferPerConnection: 4*maxWindow - 1,
			SendPingTimeout: pingTimeout, PingTimeout: pingTimeout,
		},
	}
	ctx, cancel := context.WithCancel(context.Background()) // a blocked read does not notice the end
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	_ = server.Serve(&singleListener{wire: w.wire}) // until the wire is closed
	cancel()
	_ = server.Close()
	w.tasks.Wait()
}

// singleListener is a listener with one connection.
type singleListener struct {
	wire  *wire
	taken bool
}

// Accept returns the connection, and then waits for its end.
func (o *singleListener) Accept() (net.Conn, error) {
	if !o.taken {
		o.taken = true
		return o.wire, nil
	}
	<-o.wire.closed
	return nil, net.ErrClosed
}

// Close does nothing: the connection is closed by its owner.
func (o *singleListener) Close() error   { return nil }
func (o *singleListener) Addr() net.Addr { return streamAddr{} }

func (w *worker) publish(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files, contents, err := decode(r.Body, w.contents)
	if err == nil {
		err = w.host.Publish(files)
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	w.contents = contents
}

func (w *worker) warm(rw http.ResponseWriter, r *http.Request) {
	var jobs []sandbox.Job
	if readJSON(rw, r, &jobs) {
		w.host.Warm(jobs...)
	}
}

func (w *worker) waiting(rw http.ResponseWriter, r *http.Request) {
	var interpreter sandbox.Interpreter
	if !readJSON(rw, r, &interpreter) {
		return
	}
	var reply waitingReply
	reply.Count, reply.Full = w.host.Waiting(interpreter)
	_ = json.NewEncoder(rw).Encode(reply)
}

func (w *worker) checks(rw http.ResponseWriter, r *http.Request) {
	all := sandbox.Checks(r.Context(), w.opts.Host)
	for _, name := range w.opts.services() {
		all = append(all, sandbox.Check{Name: "service " + name, OK: true, Detail: "installed"})
	}
	_ = json.NewEncoder(rw).Encode(all)
}

func readJSON(rw http.ResponseWriter, r *http.Request, v any) bool {
	data, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxSmall))
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

// run runs one program, until its request ends.
func (w *worker) run(rw http.ResponseWriter, r *http.Request) {
	s := &requestStream{rw: rw, control: http.NewResponseController(rw), body: r.Body}
	if s.control.Flush() != nil {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	x := &execution{worker: w, cancel: cancel}
	x.messages = bridge.NewMessages(s, x.handleMessage)
	x.relay = bridge.NewRelay(x.messages, w.opts.Spool)
	defer x.relay.Close()
	if err := x.run(ctx); err != nil && r.Context().Err() == nil {
		w.log.WarnContext(ctx, "execution", "error", err)
	}
}

// execution is one program on the worker.
type execution struct {
	worker       *worker
	messages     *bridge.Messages
	relay        *bridge.Relay
	cancel       context.CancelFunc
	job          *sandbox.Job // nil until received
	owner        atomic.Pointer[string]
	hasFiles     bool
	streamOutput bool
}

// handleMessage handles the gateway's messages that do not belong to the bridge. Only the reader of the messages calls it.
func (x *execution) handleMessage(kind byte, data []byte) error {
	switch {
	case kind == kindCancel:
		x.cancel()
		return nil
	case kind == kindPause:
		x.relay.SetPaused(string(data) == "1")
		return nil
	case kind == kindOwner && len(data) <= maxOwner:
		owner := string(data)
		x.owner.Store(&owner)
		return nil
	case kind != kindJob || x.job != nil:
		return errors.New("the gateway sent a message of an unknown kind")
	}
	var head jobHead
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	x.job, x.hasFiles = &sandbox.Job{ID: head.ID, Interpreter: head.Interpreter, Limits: head.Limits, Session: head.Session, Owner: head.Owner, Environment: head.Environment}, head.Files
	if len(head.Added) > 0 {
		x.job.Added = &sandbox.Added{Environment: head.Environment, Packages: head.Added}
	}
	x.owner.Store(&head.Owner)
	x.job.OwnerAfter = func() string { return *x.owner.Load() }
	x.streamOutput = head.StreamOutput
	return nil
}

func (x *execution) run(ctx context.Context) error {
	program, err := x.relay.ReadProgram()
	if err != nil {
		return err
	}
	if x.job == nil {
		return errors.New("received a program without a job")
	}
	x.job.Code, x.job.File, x.job.Variables, x.job.Prelude = program.Code, program.File, program.Variables, program.Prelude
	if x.hasFiles {
		x.job.Workspace = x.relay.Workspace()
	}
	var reader sync.WaitGroup
	reader.Go(func() {
		_ = x.relay.Serve() // until the request is over
		x.cancel()
	})
	outcome, end, err := x.runJob(ctx)
	defer end()
	err = x.finish(outcome, err)
	// The gateway ends the request when it has read the outcome. Ending it here would break the results
	// that it is still writing, and with them its reading.
	linger := time.AfterFunc(lingerLimit, func() { _ = x.messages.Close() })
	defer linger.Stop()
	reader.Wait()
	return err
}

// runJob runs the program in a sandbox. The caller must call end when the gateway has the outcome.
func (x *execution) runJob(ctx context.Context) (outcome sandbox.Outcome, end func(), err error) {
	end = func() {}
	if x.worker.opts.Begin != nil {
		begun, err := x.worker.opts.Begin()
		if err != nil {
			return outcome, end, err
		}
		end = begun
	}
	if err = x.addPackages(ctx); err != nil && ctx.Err() != nil {
		return sandbox.Outcome{Status: sandbox.Canceled}, end, nil //nolint:nilerr // that is the outcome
	}
	if err != nil {
		return outcome, end, err
	}
	said := x.relayOutput()
	outcome, err = x.worker.host.Run(ctx, *x.job, x.relay)
	said()
	return outcome, end, err
}

// lingerLimit is how long a gateway may take to read a program's outcome.
const lingerLimit = time.Minute

func (x *execution) finish(outcome sandbox.Outcome, why error) error {
	if err := sendOutcome(x.messages, outcome, why); err != nil {
		return err
	}
	return x.relay.Finish(outcome.Emitted, bridge.ProgramResult{Value: outcome.Value, Fault: outcome.Fault, Exit: outcome.Exit})
}

// requestStream is an HTTP request with open bodies, as a stream.
type requestStream struct {
	rw      http.ResponseWriter
	control *http.ResponseController
	body    io.ReadCloser
}

func (a *requestStream) Read(p []byte) (int, error) { return a.body.Read(p) }

func (a *requestStream) Write(p []byte) (int, error) {
	n, err := a.rw.Write(p)
	if err == nil {
		err = a.control.Flush()
	}
	return n, err
}

// SetWriteDeadline sets the response's write deadline.
func (a *requestStream) SetWriteDeadline(t time.Time) error { return a.control.SetWriteDeadline(t) }

// Close closes the request body. The response ends with its handler.
func (a *requestStream) Close() error { return a.body.Close() }
