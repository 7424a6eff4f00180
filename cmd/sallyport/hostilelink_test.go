package main_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"sallyport/internal/natsconn"
)

// The messages of a link, and those of a program on it, as docs/how-to/workers.md and remote-sandboxes.md describe them.
const (
	linkData, linkAck, linkEnd, linkReset = 1, 2, 3, 5
	linkHead, linkWindow                  = 9, 2 << 20

	programText, programOutcome, programStdout, programLive = 1, 18, 19, 22
)

// hostileWorker joins with the credentials of a worker, and says what a test wants.
type hostileWorker struct {
	conn     *nats.Conn
	name     string
	greeting map[string]any
	// accept is called for each link that a gateway asks for.
	accept func(l *hostileLink)
	// service answers requests for services; nil says nothing of use.
	service http.HandlerFunc
}

// hostileLink is a link to a gateway. It has its own implementation of the protocol, without checks.
type hostileLink struct {
	net.Conn // of what comes, in order

	worker *hostileWorker
	to     string
	in     net.Conn // the other end of Conn
	mu     sync.Mutex
	moved  *sync.Cond
	got    uint64 // bytes that have come
	sent   uint64
	room   uint64 // up to where the gateway has room
	said   bytes.Buffer
}

// newHostileWorker connects a worker with its credentials. It joins with its first beat.
func (s *workersSite) newHostileWorker(t *testing.T, name string) *hostileWorker {
	t.Helper()
	h := &hostileWorker{name: name, greeting: s.realGreeting(t), accept: func(*hostileLink) {}}
	conn, unanswered, err := natsconn.Server{URL: s.servers, Creds: filepath.Join(s.keys, name+".creds")}.Connect()
	if err == nil {
		err = unanswered
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	h.conn = conn
	return h
}

// realGreeting is what a worker of this build says first.
func (s *workersSite) realGreeting(t *testing.T) (greeting map[string]any) {
	t.Helper()
	out, err := s.command("worker", "--stdio").Output() // its input is empty
	if err := json.Unmarshal(bytes.SplitN(out, []byte("\n"), 2)[0], &greeting); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_ = err // it ends when its greeting gets no answer
	return greeting
}

const hostileSubjects = "_WORKERS.sallyport."

// join says that a process of this worker is there, again and again until the connection is closed, and accepts links to it.
func (h *hostileWorker) join(t *testing.T, beat string) (instance string) {
	t.Helper()
	instance = rand.Text()
	if _, err := h.conn.Subscribe(hostileSubjects+"dial."+h.name+"."+instance, func(m *nats.Msg) { h.open(instance, string(m.Data)) }); err != nil {
		t.Fatal(err)
	}
	go func() {
		for !h.conn.IsClosed() {
			_ = h.conn.Publish(h.beatOf(instance), []byte(beat))
			time.Sleep(500 * time.Millisecond)
		}
	}()
	return instance
}

func (h *hostileWorker) beatOf(instance string) string {
	return hostileSubjects + "beat." + h.name + "." + instance
}

func (h *hostileWorker) open(instance, link string) {
	l := &hostileLink{worker: h, to: hostileSubjects + "out." + h.name + "." + instance + "." + link, room: linkWindow}
	l.moved = sync.NewCond(&l.mu)
	l.Conn, l.in = net.Pipe()
	come := make(chan []byte, 10_000)
	if _, err := h.conn.Subscribe(hostileSubjects+"in."+h.name+"."+instance+"."+link, func(m *nats.Msg) { l.hear(m.Data, come) }); err != nil {
		return
	}
	go func() {
		for data := range come {
			_, _ = l.in.Write(data) // it fails after the end
		}
	}()
	go h.accept(l)
}

// hear acknowledges what comes at once.
func (l *hostileLink) hear(m []byte, come chan<- []byte) {
	if len(m) < linkHead {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	offset, content := binary.BigEndian.Uint64(m[1:]), m[linkHead:]
	switch m[0] {
	case linkData:
		if offset == l.got {
			l.got += uint64(len(content))
			come <- content
		}
	case linkAck:
		l.room = binary.BigEndian.Uint64(content)
		l.moved.Broadcast()
	case linkEnd, linkReset:
		l.room = 1 << 60
		l.moved.Broadcast()
		_ = l.in.Close()
	}
	l.ack()
}

func (l *hostileLink) ack() {
	l.say(linkAck, l.got, binary.BigEndian.AppendUint64(nil, l.got+linkWindow))
}

// say sends a message, whatever it is.
func (l *hostileLink) say(kind byte, offset uint64, content []byte) {
	_ = l.worker.conn.Publish(l.to, append(binary.BigEndian.AppendUint64([]byte{kind}, offset), content...))
}

// Write sends bytes when the gateway has room, and keeps them.
func (l *hostileLink) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0; {
		part := rest[:min(len(rest), 64<<10)]
		for l.sent+uint64(len(part)) > l.room {
			l.moved.Wait()
		}
		l.say(linkData, l.sent, part)
		l.said.Write(part)
		l.sent, rest = l.sent+uint64(len(part)), rest[len(part):]
	}
	return len(p), nil
}

// greet says who this worker is, and that it is ready.
func (l *hostileLink) greet() (ahead *bufio.Reader) {
	g := l.worker.greeting
	line, _ := json.Marshal(g) // of what was JSON
	first, _ := json.Marshal(g["sallyport"])
	rest := strings.Replace(string(line), `"sallyport":`+string(first), `"also":1`, 1)
	_, _ = io.WriteString(l, `{"sallyport":`+string(first)+","+rest[1:]+"\n")
	ahead = bufio.NewReaderSize(l, 64<<10)
	_, _ = ahead.ReadSlice('\n')
	_, _ = io.WriteString(l, "{}\n")
	return ahead
}

// answer is how a worker answers a program: rw has its messages, and job is true when all of the program has come.
type answer func(l *hostileLink, rw io.Writer, r *http.Request)

// serve speaks the protocol as a worker does, and answers each program.
func (l *hostileLink) serve(answers answer) {
	ahead := l.greet()
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(rw, "{}")
	})
	if l.worker.service != nil {
		mux.HandleFunc("/service/", l.worker.service)
	}
	mux.HandleFunc("/run", func(rw http.ResponseWriter, r *http.Request) {
		out := flushed{rw, http.NewResponseController(rw)}
		_ = out.control.Flush()
		readProgram(r.Body)
		answers(l, out, r)
	})
	listener := &onceListener{conn: make(chan net.Conn, 1)}
	listener.conn <- aheadConn{l, ahead}
	server := &http.Server{Handler: mux, Protocols: protocols, ReadHeaderTimeout: time.Hour}
	_ = server.Serve(listener)
}

// readProgram reads until the program has come, and then drops what comes.
func readProgram(body io.Reader) {
	var heard []byte
	for chunk := make([]byte, 1024); !bytes.Contains(heard, []byte(`"type":"run"`)); {
		n, err := body.Read(chunk)
		heard = append(heard, chunk[:n]...)
		if err != nil {
			return
		}
	}
	go func() { _, _ = io.Copy(io.Discard, body) }()
}

type flushed struct {
	io.Writer

	control *http.ResponseController
}

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	_ = f.control.Flush()
	return n, err
}

// aheadConn is a link of which some bytes are read ahead.
type aheadConn struct {
	*hostileLink

	ahead *bufio.Reader
}

func (c aheadConn) Read(p []byte) (int, error) { return c.ahead.Read(p) }

// onceListener has one connection, and never another.
type onceListener struct{ conn chan net.Conn }

func (o *onceListener) Accept() (net.Conn, error) { return <-o.conn, nil }
func (o *onceListener) Close() error              { return nil }
func (o *onceListener) Addr() net.Addr            { return &net.UnixAddr{} }

// programMessage is a message of a program, as a worker sends it.
func programMessage(kind byte, data string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(data)))) + data
}
