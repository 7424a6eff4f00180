package bridge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"sync"

	"github.com/gorilla/websocket"

	"sallyport/internal/tool"
	"sallyport/internal/workspace"
)

// Relay takes the guest's role at the other end of a bridge that [Attach] made, on the
// machine that runs the program. It is the program's [Caller] and, by its Workspace method,
// its [Workspace]: it forwards calls and files to the other end, which checks and
// counts them like a guest's.
//
// First call Program, then Serve to read results while the program runs, and finally End.
type Relay struct {
	m     *Messages
	files *spool

	mu        sync.Mutex // guards the rest
	lastID    int64
	pending   map[int64]pendingCall
	closedErr error // set when the other end has disconnected
	clock     tool.Clock
	resume    func() // ends the pause that the other end requested
}

// pendingCall is a pending call.
type pendingCall struct {
	answer chan<- answer // holds one
	peer   tool.Peer
}

type answer struct {
	value json.RawMessage
	err   error
}

// relayLimit is the maximum length in bytes of a frame that a relay reads: that of a result.
const relayLimit = 1 << 30

// NewRelay returns the relay at this end of m. It stores files in dir; "" is the system's temporary folder.
func NewRelay(m *Messages, dir string) *Relay {
	m.SetReadLimit(relayLimit)
	return &Relay{m: m, files: newSpool(dir), pending: map[int64]pendingCall{}}
}

// Close removes the files. The messages stay open.
func (r *Relay) Close() { r.files.close() }

// ReadProgram receives the files and the program. It blocks until the other end has sent all of them.
func (r *Relay) ReadProgram() (Program, error) {
	var last []byte
	in := newIntake(&replica{}, Quota{Bytes: math.MaxInt64 / 2, Files: math.MaxInt32}, func() (guestFrame, io.Reader, error) {
		kind, reader, err := r.m.NextReader()
		if err != nil || kind == binaryMessage {
			return guestFrame{}, reader, err
		}
		if last, err = io.ReadAll(reader); err != nil {
			return guestFrame{}, nil, err
		}
		frame, err := parse(last)
		return frame, nil, err
	})
	in.paths = math.MaxInt
	_, err := in.run(r.files)
	if err = errors.Join(err, in.err); err != nil {
		return Program{}, fmt.Errorf("read program: %w", err)
	}
	var program runFrame
	if err := json.Unmarshal(last, &program); err != nil || program.Type != "run" {
		return Program{}, fmt.Errorf("read program: %w", errors.Join(errBadMessage, err))
	}
	return program.Program, nil
}

// Workspace returns the workspace of the other end, with the files that Program received.
func (r *Relay) Workspace() Workspace { return relayWorkspace{r} }

// Serve reads results until the other end disconnects, and returns the error. Pending calls fail then.
func (r *Relay) Serve() error {
	for {
		_, reader, err := r.m.NextReader()
		var data []byte
		if err == nil {
			data, err = io.ReadAll(reader)
		}
		if err != nil {
			r.fail(err)
			return err
		}
		r.dispatch(data)
	}
}

// dispatch dispatches a frame to its pending call.
func (r *Relay) dispatch(data []byte) {
	if id, value, ok := parseResult(data); ok {
		r.deliver(id, answer{value: value})
		return
	}
	var frame errorFrame
	if json.Unmarshal(data, &frame) != nil {
		return
	}
	switch frame.Type {
	case "error":
		e := frame.Error
		r.deliver(frame.ID, answer{err: &tool.Error{Kind: e.Kind, Message: e.Message, Hint: e.Hint, Retryable: e.Retryable}})
	case "progress":
		r.mu.Lock()
		w := r.pending[frame.ID]
		r.mu.Unlock()
		if w.peer != nil {
			w.peer.Notify("notifications/progress", data)
		}
	}
}

// parseResult parses a frame that appendRawResult encoded.
func parseResult(frame []byte) (id int64, value json.RawMessage, ok bool) {
	rest, ok := bytes.CutPrefix(frame, []byte(resultHead))
	if !ok {
		return 0, nil, false
	}
	number, value, ok := bytes.Cut(rest, []byte(resultValue))
	if !ok || len(number) > 20 {
		return 0, nil, false
	}
	value, ok = bytes.CutSuffix(value, []byte("}"))
	id, err := strconv.ParseInt(string(number), 10, 64)
	return id, value, ok && err == nil
}

func (r *Relay) deliver(id int64, a answer) {
	r.mu.Lock()
	w, ok := r.pending[id]
	delete(r.pending, id)
	r.mu.Unlock()
	if ok {
		w.answer <- a
	}
}

func (r *Relay) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closedErr = &tool.Error{Kind: tool.Canceled, Message: "the gateway disconnected", Err: err}
	for id, w := range r.pending {
		w.answer <- answer{err: r.closedErr}
		delete(r.pending, id)
	}
}

// SetPaused pauses or resumes the clock of the calling program, following the other end's clock. It does nothing
// before the first call.
func (r *Relay) SetPaused(still bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resume != nil {
		r.resume()
		r.resume = nil
	}
	if still && r.clock != nil {
		r.resume = r.clock.Pause()
	}
}

// register registers a call that is about to be sent.
func (r *Relay) register(ctx context.Context, peer tool.Peer) (id int64, wait chan answer, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastID++
	r.clock = tool.ClockOf(ctx)
	if r.closedErr != nil {
		return 0, nil, r.closedErr
	}
	wait = make(chan answer, 1)
	r.pending[r.lastID] = pendingCall{wait, peer}
	return r.lastID, wait, nil
}

// callFrame is a guest's call frame without the arguments, which are appended unchanged.
type callFrame struct {
	Type     string `json:"type"`
	ID       int64  `json:"id"`
	Tool     string `json:"tool"`
	Progress bool   `json:"progress,omitempty"`
}

func appendCall(b []byte, id int64, c tool.Call, progress bool) ([]byte, error) {
	b, err := appendJSON(b, callFrame{"call", id, c.Tool.String(), progress})
	if err != nil || len(c.Args) == 0 {
		return b, err
	}
	b = append(bytes.TrimSuffix(b, []byte("}")), `,"args":`...)
	return append(append(b, c.Args...), '}'), nil
}

// request makes a call at the other end. It returns the encoded value of the result frame.
func (r *Relay) request(ctx context.Context, c tool.Call, progress bool) (json.RawMessage, error) {
	id, wait, err := r.register(ctx, c.Peer)
	if err != nil {
		return nil, err
	}
	frame, err := appendCall(nil, id, c, progress)
	if err == nil {
		err = r.m.WriteMessage(websocket.TextMessage, frame)
	}
	if err != nil {
		r.deliver(id, answer{err: &tool.Error{Kind: tool.Canceled, Message: "the gateway disconnected", Err: err}})
	}
	select {
	case a := <-wait:
		return a.value, a.err
	case <-ctx.Done(): // the program has ended; the other end cancels the call too
		r.deliver(id, answer{})
		return nil, ctx.Err()
	}
}

// Call implements [Caller]. The result holds an encoded value of the bridge's frames; a bridge of
// this package forwards it to its guest unchanged.
func (r *Relay) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	value, err := r.request(ctx, c, false)
	return tool.Result{Structured: value}, err
}

// rawCaller is a [Caller] that returns results as they are encoded in a frame, as [Relay] does.
type rawCaller interface {
	request(ctx context.Context, c tool.Call, progress bool) (json.RawMessage, error)
}

// relayCall forwards a guest's call to the other end of a relay.
func (s *session) relayCall(ctx context.Context, r rawCaller, frame guestFrame, id tool.ID, p *peer) {
	result, err := p.callWithProgress(func() (tool.Result, error) {
		value, err := r.request(ctx, tool.Call{Tool: id, Args: frame.Args, Peer: p}, frame.Progress)
		return tool.Result{Raw: value}, err
	})
	switch {
	case ctx.Err() != nil: // the result is no longer needed
	case err != nil:
		s.fail(frame.ID, err)
	default:
		answer, err := appendRawResult(nil, frame.ID, result.Raw)
		s.sendResult(frame.ID, answer, err)
	}
}

func (r *Relay) sendJSON(frame any) error {
	data, err := appendJSON(nil, frame)
	if err != nil {
		return err
	}
	return r.m.WriteMessage(websocket.TextMessage, data)
}

// emitFrame is a guest's "emit" frame.
type emitFrame struct {
	Type    string      `json:"type"`
	ID      int64       `json:"id"`
	Content emitContent `json:"content"`
}

// doneFrame is a guest's "done" frame.
type doneFrame struct {
	Type string `json:"type"`
	ProgramResult
}

// Finish sends what the program emitted, and its result.
func (r *Relay) Finish(emitted []tool.Content, done ProgramResult) error {
	for _, c := range emitted {
		r.mu.Lock()
		r.lastID++ // no pending call has this ID, so its answer is ignored
		id := r.lastID
		r.mu.Unlock()
		shown := emitContent{Type: c.Type, Text: c.Text, Data: base64.StdEncoding.EncodeToString(c.Data), MIME: c.MIME, Name: c.Name, URI: c.URI}
		if err := r.sendJSON(emitFrame{"emit", id, shown}); err != nil {
			return err
		}
	}
	return r.sendJSON(doneFrame{"done", done})
}

// relayWorkspace is the workspace of the other end.
type relayWorkspace struct{ *Relay }

// Files implements [Workspace].
func (r relayWorkspace) Files() iter.Seq2[workspace.File, error] { return r.files.Files() }

// Open implements [Workspace].
func (r relayWorkspace) Open(path string) (workspace.File, error) { return r.files.Open(path) }

// Update implements [Workspace]. A file is forwarded after it has been received completely.
func (r relayWorkspace) Update(changes iter.Seq2[workspace.File, error]) (workspace.Updated, error) {
	updated := workspace.Updated{Versions: map[string]string{}}
	out := &fileSender{send: r.m.WriteMessage}
	for f, err := range changes {
		if err != nil {
			return updated, errors.Join(err, out.flush())
		}
		if err := r.forward(out, f, updated.Versions); err != nil {
			return updated, errors.Join(err, out.flush())
		}
	}
	return updated, out.flush()
}

func (r relayWorkspace) forward(out *fileSender, f workspace.File, versions map[string]string) error {
	kept, err := r.files.add(f)
	switch {
	case err != nil:
		return err
	case f.Gone:
		return out.add(entry{Path: f.Path, Gone: true})
	case f.Folder:
		return out.add(entry{Path: f.Path, Folder: true})
	}
	versions[f.Path] = kept.Version
	return out.file(kept.open(r.files.file))
}
