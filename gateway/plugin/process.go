package plugin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"sallyport/internal/sanitize"
)

const (
	// maxLine bounds one message of a plugin, in bytes, maxSent one to it.
	maxLine = 8 << 20
	maxSent = 8 << 20
	// maxAsks bounds the concurrent requests of a plugin.
	maxAsks = 8
	// startTimeout bounds the start of a sandbox with the import of the code.
	startTimeout = 30 * time.Second
)

// Conn is the connection to a sandbox: its standard input and output. Done is closed when the sandbox is removed.
type Conn interface {
	io.ReadWriteCloser
	Done() <-chan struct{}
}

// Fault is an exception in a function of a plugin. Its texts are untrusted.
type Fault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	File    string `json:"file"`
	Line    int    `json:"line"`
}

// Error returns "Type: message (file:line)", in one line.
func (f *Fault) Error() string {
	text := sanitize.Line(f.Type, 60) + ": " + sanitize.Line(f.Message, 300)
	if f.File != "" && f.Line > 0 {
		text += fmt.Sprintf(" (%s:%d)", sanitize.Line(f.File, 100), f.Line)
	}
	return text
}

// function is what a plugin says of a function.
type function struct {
	Doc    string          `json:"doc,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	// Order is the order of the parameters, for a language without named arguments.
	Order []string `json:"order,omitempty"`
}

// message is a line from a plugin.
type message struct {
	Ready map[string]function `json:"ready"`
	ID    int64               `json:"id"`
	Value json.RawMessage     `json:"value"`
	Fault *Fault              `json:"fault"`
	Ask   int64               `json:"ask"`
	Fetch *fetchRequest       `json:"fetch"`
}

// process is one run of a plugin's sandbox.
type process struct {
	conn  Conn
	fetch func(ctx context.Context, r fetchRequest) (fetchResponse, error)
	out   chan []byte
	ctx   context.Context //nolint:containedctx // of the process: what it asks for ends with it
	kill  context.CancelCauseFunc
	ready chan map[string]function
	work  sync.WaitGroup
	// ended is closed when everything of it has ended.
	ended chan struct{}

	mu      sync.Mutex
	last    int64
	pending map[int64]chan message
	// abandoned counts the calls that ended without their answer.
	abandoned int
}

// newProcess speaks with a sandbox that has been started.
func newProcess(conn Conn, fetch func(context.Context, fetchRequest) (fetchResponse, error)) *process {
	ctx, kill := context.WithCancelCause(context.Background())
	p := &process{conn: conn, fetch: fetch, out: make(chan []byte), ctx: ctx, kill: kill, ready: make(chan map[string]function, 1), ended: make(chan struct{}), pending: map[int64]chan message{}}
	p.work.Go(p.write)
	p.work.Go(func() { p.kill(p.read()) })
	go func() {
		<-ctx.Done()
		_ = conn.Close() // unblocks read and write
		p.work.Wait()
		close(p.ended)
	}()
	return p
}

// why returns why the process ended.
func (p *process) why() error { return context.Cause(p.ctx) }

func (p *process) write() {
	for {
		select {
		case line := <-p.out:
			if _, err := p.conn.Write(line); err != nil {
				p.kill(errExited)
				return
			}
		case <-p.ctx.Done():
			return
		}
	}
}

var (
	errExited   = errors.New("it exited")
	errFlood    = fmt.Errorf("it sent a message of more than %d MiB", maxLine>>20)
	errProtocol = errors.New("it sent what nobody asked for")
)

// read reads messages until the process ends, and returns why it did.
func (p *process) read() error {
	in := bufio.NewReaderSize(p.conn, 64<<10)
	asks := make(chan struct{}, maxAsks)
	for {
		line, err := readLine(in)
		if err != nil {
			return err
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			return errProtocol
		}
		switch {
		case m.Fetch != nil:
			select {
			case asks <- struct{}{}:
			case <-p.ctx.Done():
				return errExited
			}
			p.work.Go(func() { defer func() { <-asks }(); p.answer(m.Ask, *m.Fetch) })
		case m.ID > 0:
			err = p.deliver(m)
		case m.Ready != nil:
			err = p.start(m.Ready)
		case m.Fault != nil:
			err = m.Fault
		default:
			err = errProtocol
		}
		if err != nil {
			return err
		}
	}
}

func (p *process) start(functions map[string]function) error {
	select {
	case p.ready <- functions:
		return nil
	default:
		return errProtocol // twice
	}
}

// readLine returns the next line. It is valid until the next call only if it fits the reader's buffer.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err == nil {
		return line, nil
	}
	whole := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) && len(whole) <= maxLine {
		line, err = in.ReadSlice('\n')
		whole = append(whole, line...)
	}
	switch {
	case len(whole) > maxLine:
		return nil, errFlood
	case err != nil:
		return nil, errExited
	}
	return whole, nil
}

// deliver passes an answer to the call that waits for it.
func (p *process) deliver(m message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	box, ok := p.pending[m.ID]
	switch {
	case ok:
		delete(p.pending, m.ID)
		box <- m // it has room for one
	case p.abandoned == 0:
		return errProtocol
	default:
		p.abandoned--
	}
	return nil
}

// send sends one message. It waits while the plugin does not read.
func (p *process) send(ctx context.Context, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(line) > maxSent {
		return fmt.Errorf("it has more than %d MiB", maxSent>>20)
	}
	select {
	case p.out <- append(line, '\n'):
		return nil
	case <-p.ctx.Done():
		return p.why()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// request is a call of a function.
type request struct {
	ID   int64  `json:"id"`
	Run  string `json:"run"`
	Args []any  `json:"args,omitempty"`
	// Each has the function called with each of these texts; the value is the list of the values.
	Each []string `json:"each,omitempty"`
	// Kwargs are arguments by name; Order is the order of the parameters, for a language without named ones.
	Kwargs json.RawMessage `json:"kwargs,omitempty"`
	Order  []string        `json:"order,omitempty"`
}

// call calls a function. Its errors are a *Fault, why the process ended, or that of ctx.
func (p *process) call(ctx context.Context, r request) (json.RawMessage, error) {
	box := make(chan message, 1)
	p.mu.Lock()
	p.last++
	r.ID = p.last
	p.pending[r.ID] = box
	p.mu.Unlock()
	if err := p.send(ctx, r); err != nil {
		p.abandon(r.ID)
		return nil, err
	}
	select {
	case m := <-box:
		if m.Fault != nil {
			return nil, m.Fault
		}
		return m.Value, nil
	case <-p.ctx.Done():
		return nil, p.why()
	case <-ctx.Done():
		p.abandon(r.ID)
		return nil, ctx.Err()
	}
}

func (p *process) abandon(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.pending[id]; ok {
		delete(p.pending, id)
		p.abandoned++
	}
}

// answer makes a request of the plugin.
func (p *process) answer(ask int64, r fetchRequest) {
	found, err := p.fetch(p.ctx, r)
	reply := map[string]any{"answer": ask, "value": found}
	if err != nil {
		reply = map[string]any{"answer": ask, "error": err.Error()}
	}
	_ = p.send(p.ctx, reply) // an error means that it has ended
}

// close kills the sandbox and waits until it is removed.
func (p *process) close(why error) {
	p.kill(why)
	<-p.ended
	<-p.conn.Done()
}
