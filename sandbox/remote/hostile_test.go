package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

func guest() fstest.MapFS { return fstest.MapFS{"guest.py": {Data: []byte("pass")}} }

// hostileWorker is a worker that says what a test wants: as lines after its greeting, as bytes in
// place of HTTP/2, or as the answer to a program.
type hostileWorker struct {
	hello   func(g *greeting)
	before  string
	instead func(conn net.Conn)
	answer  func(a *requestStream, r *http.Request)
	service func(a *requestStream, r *http.Request)
	// packages is the answer to a request for packages.
	packages string
	dials    atomic.Int64
}

func (l *hostileWorker) dial(context.Context) (io.ReadWriteCloser, error) {
	l.dials.Add(1)
	near, far := net.Pipe()
	go l.serve(far)
	return near, nil
}

func (l *hostileWorker) serve(conn net.Conn) {
	defer conn.Close()
	sum, _ := digest(guest())
	here := greeting{Sallyport: "worker", Compat: Here(), Version: "v2", Guest: sum}
	if l.hello != nil {
		l.hello(&here)
	}
	io.WriteString(conn, l.before)
	writeLine(conn, here)
	ahead := bufio.NewReaderSize(conn, maxHello)
	var there greeting
	if readLine(ahead, "{", &there) != nil {
		return
	}
	writeLine(conn, readiness{})
	if l.instead != nil {
		l.instead(conn)
		return
	}
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	mux := http.NewServeMux()
	mux.HandleFunc(pathPublish, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	mux.HandleFunc(pathRun, func(rw http.ResponseWriter, r *http.Request) {
		a := &requestStream{rw: rw, control: http.NewResponseController(rw), body: r.Body}
		a.control.Flush()
		l.answer(a, r)
	})
	mux.HandleFunc(pathService, func(rw http.ResponseWriter, r *http.Request) {
		a := &requestStream{rw: rw, control: http.NewResponseController(rw), body: r.Body}
		a.control.Flush()
		l.service(a, r)
	})
	mux.HandleFunc(pathPackages, func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, l.packages) })
	server := &http.Server{Handler: mux, Protocols: protocols}
	server.Serve(&singleListener{wire: newWire(ahead, conn)})
}

// readJob reads until the program has come, and then drops what comes.
func readJob(body io.Reader) {
	var heard []byte
	for chunk := make([]byte, 1024); !bytes.Contains(heard, []byte(`"type":"run"`)); {
		n, err := body.Read(chunk)
		heard = append(heard, chunk[:n]...)
		if err != nil {
			return
		}
	}
	go io.Copy(io.Discard, body)
}

// recordingCaller is a caller that must not be asked more than it may.
type recordingCaller struct{ calls []tool.Call }

func (c *recordingCaller) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	c.calls = append(c.calls, call)
	return tool.Result{Structured: json.RawMessage(`1`)}, nil
}

func job() sandbox.Job {
	j := sandbox.Job{ID: "e-1", Interpreter: sandbox.Python, Code: "1", Limits: sandbox.DefaultLimits(), OnOutput: func(sandbox.Stream, []byte) {}}
	j.Limits.Calls, j.Limits.Concurrency, j.Limits.Output = 3, 1, 1024
	return j
}

func (l *hostileWorker) client(t *testing.T) *Client {
	t.Helper()
	c, err := New(l.dial, &Options{Version: "v1", Guest: guest(), Name: "ssh://liar"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// message is one, with a length that need not be true.
func message(kind byte, length uint32, data string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, length)) + data
}

func text(data string) string { return message(1, uint32(len(data)), data) }

func outcome(data string) string { return message(kindOutcome, uint32(len(data)), data) }

const ok = `{"type":"done","value":{"kind":"json","text":"1","size":1}}`

// TestHostileWorker: what a worker says that it should not costs it the program, or itself, and nothing else.
func TestHostileWorker(t *testing.T) {
	for name, test := range map[string]struct {
		says   string
		forms  func() string // instead of says
		status sandbox.Status
		calls  int // that are made
		over   int // that are refused
		check  func(o sandbox.Outcome) bool
	}{
		"what it should":                 {says: outcome(`{"status":"ok"}`) + text(ok), status: sandbox.OK, check: func(o sandbox.Outcome) bool { return o.Value.Text == "1" }},
		"an end without an outcome":      {says: text(ok), status: sandbox.Crashed},
		"an outcome without an end":      {says: outcome(`{"status":"ok"}`), status: sandbox.Crashed},
		"two outcomes":                   {says: outcome(`{"status":"ok"}`) + outcome(`{"status":"ok"}`) + text(ok), status: sandbox.Crashed},
		"nothing":                        {status: sandbox.Crashed},
		"a status that there is not":     {says: outcome(`{"status":"\u001b[31mfine"}`) + text(ok), status: sandbox.Crashed, check: func(o sandbox.Outcome) bool { return o.Value == nil }},
		"ok with a fault":                {says: outcome(`{"status":"ok"}`) + text(`{"type":"done","fault":{"type":"E"}}`), status: sandbox.Crashed},
		"failed without a fault":         {says: outcome(`{"status":"failed"}`) + text(ok), status: sandbox.Crashed},
		"an exit that is none":           {says: outcome(`{"status":"exited","exit":99999}`) + text(ok), status: sandbox.Exited, check: func(o sandbox.Outcome) bool { return o.Exit == 99999&0xff }},
		"a message of another kind":      {says: message(200, 1, "x"), status: sandbox.Crashed},
		"a message of kind 3":            {says: message(3, 1, "x"), status: sandbox.Crashed},
		"a job, or a cancellation":       {says: message(kindJob, 2, "{}") + text(ok), status: sandbox.Crashed},
		"a message of 4 GiB":             {says: message(1, 1<<32-1, "x"), status: sandbox.Crashed},
		"a message aside of 4 GiB":       {says: message(kindStdout, 1<<32-1, "x"), status: sandbox.Crashed},
		"half a message":                 {says: text(ok)[:20], status: sandbox.Crashed},
		"files where there are none":     {says: text(`{"type":"files","entries":[{"path":"a","size":1}]}`) + message(2, 1, "x") + text(ok), status: sandbox.Crashed},
		"what is no JSON":                {says: text(`{"type":`), status: sandbox.Crashed},
		"output without end":             {says: strings.Repeat(message(kindStdout, 1000, strings.Repeat("x", 1000)), 100), status: sandbox.Crashed},
		"live output without end":        {says: strings.Repeat(message(kindLiveStdout, 1<<20, strings.Repeat("x", 1<<20)), 60) + outcome(`{"status":"ok"}`) + text(ok), status: sandbox.Crashed},
		"output that is no text":         {says: message(kindStderr, 3, "a\x00\xff") + outcome(`{"status":"ok","stdout_cut":-5}`) + text(ok), status: sandbox.OK, check: func(o sandbox.Outcome) bool { return o.Stderr.Text == "a\uFFFD\uFFFD" && o.Stdout.Cut == 0 }},
		"notes without end":              {forms: longNotes, status: sandbox.OK, check: func(o sandbox.Outcome) bool { return len(o.Notes) == maxNotes && len(o.Notes[0]) <= maxNote+8 }},
		"more calls than there may be":   {says: strings.Repeat(text(`{"type":"call","id":1,"tool":"a.b","args":{}}`), 9) + outcome(`{"status":"ok"}`) + text(ok), status: sandbox.OK, calls: 3},
		"a call for another execution":   {says: text(`{"type":"call","id":1,"tool":"a.b","args":{},"execution":"e-2","principal":"root"}`) + outcome(`{"status":"ok","id":"e-2"}`) + text(ok), status: sandbox.OK, calls: 1},
		"calls that no program may make": {says: text(`{"type":"call","id":1,"tool":"a.logging/setLevel","args":{}}`) + text(`{"type":"call","id":2,"tool":"../x","args":{}}`) + outcome(`{"status":"ok"}`) + text(ok), status: sandbox.OK, over: 2},
		"answers to calls":               {says: text(`{"type":"result","id":1,"value":{"json":1}}`) + text(`{"type":"error","id":1}`) + outcome(`{"status":"ok"}`) + text(ok), status: sandbox.OK},
		"not started, after a call":      {says: text(`{"type":"call","id":1,"tool":"a.b","args":{}}`) + outcome(`{"error":"busy"}`) + text(ok), status: sandbox.Crashed, calls: 1},
		"what cannot be emitted":         {says: text(`{"type":"emit","id":1,"content":{"type":"resource","uri":"javascript:x","text":"x"}}`) + outcome(`{"status":"ok"}`) + text(ok), status: sandbox.OK, check: func(o sandbox.Outcome) bool { return len(o.Emitted) == 0 }},
		"a value that is too long": {forms: longValue, status: sandbox.OK, check: func(o sandbox.Outcome) bool {
			return len(o.Value.Text) == sandbox.DefaultLimits().Value && o.Value.Kind == "text"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &hostileWorker{answer: func(a *requestStream, r *http.Request) {
				readJob(r.Body)
				if test.forms != nil {
					test.says = test.forms()
				}
				io.WriteString(a, test.says)
				if len(test.says) > 0 && (test.status != sandbox.Crashed || test.calls > 0) {
					<-r.Context().Done() // the other side has heard enough
				}
			}}
			caller := &recordingCaller{}
			o, err := l.client(t).Run(t.Context(), job(), caller)
			if err != nil || o.Status != test.status || o.Calls != test.calls+test.over || len(caller.calls) != test.calls {
				t.Fatalf("%+v, %v; %d calls", o, err, len(caller.calls))
			}
			if test.check != nil && !test.check(o) {
				t.Errorf("%+v", o)
			}
			for _, call := range caller.calls {
				if call.Execution != "e-1" {
					t.Errorf("a call in the name of %q", call.Execution)
				}
			}
		})
	}
}

func longNotes() string {
	data, _ := json.Marshal(endMessage{Status: sandbox.OK, Notes: slices.Repeat([]string{strings.Repeat("n\x1b", 2000)}, 100)})
	return outcome(string(data)) + text(ok)
}

func longValue() string {
	return outcome(`{"status":"ok"}`) + text(`{"type":"done","value":{"kind":"json","text":"`+strings.Repeat("9", 1<<20)+`","size":-1}}`)
}

// TestHostileFiles: files of a worker pass the same checks as those of a sandbox.
func TestHostileFiles(t *testing.T) {
	dir := t.TempDir()
	ws, err := workspace.Open(dir, workspace.Options{Bytes: 1000, Inodes: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	l := &hostileWorker{answer: func(a *requestStream, r *http.Request) {
		readJob(r.Body)
		io.WriteString(a, text(`{"type":"files","entries":[{"path":"../up","size":1},{"path":"/etc/x","size":1},{"path":"good","size":1},{"path":"a\u001b","size":1},{"path":"big","size":2000}]}`)+
			message(2, 4, "abcd")+message(2, 2000, strings.Repeat("x", 2000))+outcome(`{"status":"ok"}`)+text(ok))
		<-r.Context().Done()
	}}
	j := job()
	j.Workspace = ws
	o, err := l.client(t).Run(t.Context(), j, &recordingCaller{})
	files, _ := ws.List()
	if err != nil || o.Status != sandbox.OK || len(o.Notes) != 4 || len(files) != 1 || files[0].Path != "good" {
		t.Errorf("%+v, %v, %v", o, err, files)
	}
}

// TestHostileWire: what is no greeting, or no HTTP/2, is an error that says whose fault it is, and soon.
func TestHostileWire(t *testing.T) {
	for name, test := range map[string]struct {
		liar *hostileWorker
		want string
	}{
		"an older worker":         {&hostileWorker{hello: func(g *greeting) { g.Oldest, g.Newest = 1, 0 }}, "update it there"},
		"a newer worker":          {&hostileWorker{hello: func(g *greeting) { g.Oldest, g.Newest = 98, 99; g.Version = "v9\x1b[31m" }}, "update it here"},
		"another build":           {&hostileWorker{hello: func(g *greeting) { g.Guest, g.Newest = "x", 0 }}, "install the same build on both"},
		"an older host":           {&hostileWorker{hello: func(g *greeting) { g.Guest, g.Host = "x", 0 }}, "update it there"},
		"a newer host":            {&hostileWorker{hello: func(g *greeting) { g.Guest, g.Host = "x", 99 }}, "update it here"},
		"a greeting that is none": {&hostileWorker{before: workerLine + "\n"}, "unexpected end of JSON"},
		"noise without end":       {&hostileWorker{before: strings.Repeat("noise\n", 20_000)}, "no greeting"},
		"a line without end":      {&hostileWorker{before: strings.Repeat("x", 200_000)}, "no greeting"},
		"no HTTP/2": {&hostileWorker{instead: func(c net.Conn) {
			go io.Copy(io.Discard, c)
			fmt.Fprint(c, strings.Repeat("HTTP/1.1 200 OK\r\n\r\n", 100))
			time.Sleep(time.Hour)
		}}, "ssh://liar"},
		"a forged stream":     {&hostileWorker{instead: func(c net.Conn) { go io.Copy(io.Discard, c); c.Write(frames()); time.Sleep(time.Hour) }}, "ssh://liar"},
		"a wire that ends":    {&hostileWorker{instead: func(net.Conn) {}}, "ssh://liar"},
		"silence at the wire": {&hostileWorker{instead: func(c net.Conn) { io.Copy(io.Discard, c) }}, "ssh://liar"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := test.liar.client(t)
				begin := time.Now()
				_, err := c.Run(t.Context(), job(), &recordingCaller{})
				if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\x1b") || time.Since(begin) > connectLimit+2*pingTimeout {
					t.Errorf("%v after %s", err, time.Since(begin))
				}
				c.Close()
				time.Sleep(2 * time.Hour) // the liars end
			})
		})
	}
}

// frames are settings, and then the answer to a request that nobody made.
func frames() []byte {
	frame := func(kind, flags byte, stream uint32, payload string) []byte {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
		return append(binary.BigEndian.AppendUint32(append(head, flags), stream), payload...)
	}
	return slices.Concat(frame(4, 0, 0, ""), frame(1, 4, 99, "\x88"), frame(0, 0, 99, text(ok)))
}

// TestSilence: a worker that stops to answer is noticed by HTTP/2's pings, and one that keeps a program by the clock.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &hostileWorker{answer: func(_ *requestStream, r *http.Request) { <-r.Context().Done() }}
		c := l.client(t)
		begin := time.Now()
		o, err := c.Run(t.Context(), job(), &recordingCaller{})
		if took := time.Since(begin); err != nil || o.Status != sandbox.Crashed || took != queueLimit+job().Limits.Timeout || !strings.Contains(o.Notes[0], "in time") {
			t.Errorf("%+v, %v after %s", o, err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin = time.Now()
		o, err = c.Run(ctx, job(), &recordingCaller{})
		if took := time.Since(begin); err != nil || o.Status != sandbox.Canceled || took != time.Second+cancelLimit {
			t.Errorf("cancelled: %+v, %v after %s", o, err, took)
		}
		c.Close()
	})
}

// TestBackoff: a machine that cannot be reached is tried again after longer and longer pauses, by the next program.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials, reachable := 0, false
		l := &hostileWorker{answer: func(a *requestStream, r *http.Request) {
			readJob(r.Body)
			io.WriteString(a, outcome(`{"status":"ok"}`)+text(ok))
			<-r.Context().Done()
		}}
		c, err := New(func(ctx context.Context) (io.ReadWriteCloser, error) {
			dials++
			if !reachable {
				return nil, io.ErrNoProgress
			}
			return l.dial(ctx)
		}, &Options{Guest: guest()})
		if err != nil {
			t.Fatal(err)
		}
		for range 600 { // ten minutes
			if _, err := c.Run(t.Context(), job(), &recordingCaller{}); err == nil || !strings.Contains(err.Error(), io.ErrNoProgress.Error()) {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if dials < 20 || dials > 25 {
			t.Errorf("%d tries in ten minutes", dials)
		}
		reachable = true
		time.Sleep(maxPause)
		if o, err := c.Run(t.Context(), job(), &recordingCaller{}); err != nil || o.Status != sandbox.OK {
			t.Errorf("%+v, %v", o, err)
		}
		c.Close()
		if _, err := c.Run(t.Context(), job(), &recordingCaller{}); err == nil {
			t.Error("a closed client runs programs")
		}
	})
}

// TestTree: only what the worker does not have is sent.
func TestTree(t *testing.T) {
	first := newTree(map[string][]byte{"a": []byte("one"), "b": []byte("two"), "c": []byte("two")})
	body, err := first.encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	files, contents, err := decode(body, nil)
	if err != nil || len(files) != 3 || string(files["c"]) != "two" || len(contents) != 2 {
		t.Fatalf("%q, %v", files, err)
	}
	has := map[string]bool{}
	for digest := range contents {
		has[digest] = true
	}
	second := newTree(map[string][]byte{"a": []byte("three"), "d": []byte("one")})
	body, _ = second.encode(has)
	data, _ := io.ReadAll(body)
	if bytes.Contains(data, []byte("one")) || !bytes.Contains(data, []byte("three")) {
		t.Errorf("%q is sent", data)
	}
	files, _, err = decode(bytes.NewReader(data), contents)
	if err != nil || len(files) != 2 || string(files["d"]) != "one" || string(files["a"]) != "three" {
		t.Errorf("%q, %v", files, err)
	}
	if _, _, err := decode(bytes.NewReader(data), nil); err == nil {
		t.Error("a content that is missing is not missed")
	}
}

// readStream is a stream of bytes that are there already.
type readStream struct{ io.Reader }

func (readStream) Write(p []byte) (int, error)      { return len(p), nil }
func (readStream) Close() error                     { return nil }
func (readStream) SetWriteDeadline(time.Time) error { return nil }

// TestCallsOfALostProgram: they may go on for a while; those of a program that has ended may not.
func TestCallsOfALostProgram(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(r *report, program context.CancelCauseFunc, user context.CancelFunc)
		want time.Duration
	}{
		"lost": {func(_ *report, program context.CancelCauseFunc, _ context.CancelFunc) { program(nil) }, lostGrace},
		"ended": {func(r *report, program context.CancelCauseFunc, _ context.CancelFunc) {
			r.ended.Store(true)
			program(nil)
		}, 0},
		"too late": {func(_ *report, program context.CancelCauseFunc, _ context.CancelFunc) { program(errTimeout) }, 0},
		"canceled": {func(_ *report, program context.CancelCauseFunc, user context.CancelFunc) { user(); program(nil) }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			user, cancel := context.WithCancel(t.Context())
			program, stop := context.WithCancelCause(t.Context())
			defer cancel()
			r, took := newReport(job()), time.Duration(-1)
			var work sync.WaitGroup
			work.Go(func() {
				begin := time.Now()
				_, _ = cancelableCaller{user, waitingCaller{}, r}.Call(program, tool.Call{})
				took = time.Since(begin)
			})
			synctest.Wait()
			test.end(r, stop, cancel)
			if work.Wait(); took != test.want {
				t.Errorf("%s: it ended after %v", name, took)
			}
		})
	}
}

// waitingCaller waits for the end of the call.
type waitingCaller struct{}

func (waitingCaller) Call(ctx context.Context, _ tool.Call) (tool.Result, error) {
	<-ctx.Done()
	return tool.Result{}, ctx.Err()
}

// FuzzWorkerSays: whatever a worker says, its program ends, within its limits.
func FuzzWorkerSays(f *testing.F) {
	for _, says := range []string{outcome(`{"status":"ok"}`) + text(ok), longNotes(), text(`{"type":"call","id":1,"tool":"a.b","args":{}}`) + text(ok), message(kindStderr, 2, "xx"), message(9, 2, "xx")} {
		f.Add([]byte(says))
	}
	f.Fuzz(func(t *testing.T, says []byte) {
		c, caller, r := &Client{name: "x"}, &recordingCaller{}, newReport(job())
		b := bridge.Attach(bridge.NewMessages(readStream{bytes.NewReader(says)}, r.handleMessage), bridge.Options{})
		seen, err := b.Run(t.Context(), bridge.Program{ValueLimit: 10}, account(job(), caller, nil), func() {})
		o := c.lostOutcome(seen, err)
		if err == nil && r.end != nil {
			o = r.outcome(seen)
		}
		if !slices.Contains(statuses, o.Status) || len(caller.calls) > 3 || len(o.Stdout.Text)+len(o.Stderr.Text) > 6*(3*1024+outputNote) || len(o.Notes) > maxNotes+8 {
			t.Errorf("%+v", o)
		}
	})
}

// FuzzGreeting: whatever comes first is a greeting or an error, soon.
func FuzzGreeting(f *testing.F) {
	f.Add([]byte("Welcome\n" + workerLine + `"protocol":1}` + "\n"))
	f.Add([]byte(workerLine))
	f.Fuzz(func(_ *testing.T, data []byte) {
		var g greeting
		if readLine(bufio.NewReaderSize(bytes.NewReader(data), maxHello), workerLine, &g) == nil {
			_, _ = greeting{Compat: Here()}.agree(g)
		}
	})
}

// FuzzTree: whatever comes as a tree is one, or an error.
func FuzzTree(f *testing.F) {
	body, _ := newTree(map[string][]byte{"a": []byte("one")}).encode(nil)
	data, _ := io.ReadAll(body)
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Fuzz(func(t *testing.T, data []byte) {
		files, contents, err := decode(bytes.NewReader(data), nil)
		if err == nil && len(contents) > len(files) {
			t.Errorf("%d contents of %d files", len(contents), len(files))
		}
	})
}
