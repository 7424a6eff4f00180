package main_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"sallyport/internal/testutil"
)

const hostileBeat = `{"version":"v1","seats":1024}`

const (
	hostileOK   = `{"type":"done","value":{"kind":"json","text":"1","size":1}}`
	hostileCall = `{"type":"call","id":1,"tool":"toy.echo","args":{"text":"x"},"execution":"e-other","principal":"root"}`
)

// hostileCase is what a worker does, and what the gateway does then. Without beats it joins as one with many more seats than the
// honest one, so that it is asked first.
type hostileCase struct {
	beats  []string
	greet  func(greeting map[string]any)
	accept func(l *hostileLink)
	// check says whether an answer to a program is right; nil wants what an honest worker answers.
	check func(e executed) bool
	// log is a pattern of a line of the gateway's log that names the worker as NAME; "" is none.
	log string
	// more is done repeatedly while the programs run.
	more func(h *hostileWorker, instance string)
}

// lies answers each program with messages.
func lies(messages ...string) func(l *hostileLink) {
	return func(l *hostileLink) {
		l.serve(func(_ *hostileLink, rw io.Writer, r *http.Request) {
			_, _ = io.WriteString(rw, strings.Join(messages, ""))
			<-r.Context().Done()
		})
	}
}

func text(data string) string    { return programMessage(programText, data) }
func outcome(data string) string { return programMessage(programOutcome, data) }

func hostileCases() map[string]hostileCase {
	notStarted, lost := `a worker did not start a program.*worker=NAME`, `a program was lost.*worker NAME`
	honestOK := outcome(`{"status":"ok"}`) + text(hostileOK)
	return map[string]hostileCase{
		"does not accept a link":     {log: notStarted},
		"is older":                   {greet: func(g map[string]any) { g["protocol"], g["newest"] = 1, 0 }, accept: func(l *hostileLink) { l.greet() }, log: notStarted + `.*update it there`},
		"is newer":                   {greet: func(g map[string]any) { g["protocol"] = 99 }, accept: func(l *hostileLink) { l.greet() }, log: notStarted + `.*update it here`},
		"is another build":           {greet: func(g map[string]any) { g["guest"], g["newest"] = "x", 0 }, accept: func(l *hostileLink) { l.greet() }, log: notStarted + `.*the same build`},
		"has an older host":          {greet: func(g map[string]any) { g["guest"], g["host_interface"] = "x", 0 }, accept: func(l *hostileLink) { l.greet() }, log: notStarted + `.*update it there`},
		"takes files and is silent":  {greet: func(g map[string]any) { g["guest"] = "x" }, accept: func(l *hostileLink) { l.greet() }, log: notStarted},
		"says noise":                 {accept: func(l *hostileLink) { _, _ = l.Write(bytes.Repeat([]byte("noise\n"), 50_000)) }, log: notStarted + `.*no greeting`},
		"sends beyond the room":      {accept: sendBeyond, log: notStarted + `.*more than it may`},
		"sends what is no message":   {accept: func(l *hostileLink) { l.say(99, 0, nil) }, log: notStarted + `.*invalid message`},
		"repeats acknowledgments":    {accept: repeatAcks, log: notStarted + `.*(more than it may|no answer)`},
		"speaks no HTTP/2":           {accept: func(l *hostileLink) { l.greet(); _, _ = l.Write(bytes.Repeat([]byte("HTTP/1.1 200 OK\r\n\r\n"), 1000)) }, log: notStarted},
		"says that it is busy":       {accept: lies(outcome(`{"error":"busy\u001b[31m"}`), text(hostileOK)), log: notStarted + `.*busy`},
		"drops a program":            {accept: dropPrograms, log: lost},
		"drops many programs":        {beats: slicesOf(8, hostileBeat), accept: dropPrograms, log: lost},
		"prints without end":         {accept: printEndlessly(programStdout), log: lost},
		"prints live without end":    {accept: printEndlessly(programLive), log: lost},
		"says two outcomes":          {accept: lies(outcome(`{"status":"ok"}`), honestOK), log: lost},
		"answers before":             {accept: replay, check: isResult("1", "42"), log: lost},
		"answers more than there is": {accept: lies(outcome(`{"status":"ok"}`), text(`{"type":"done","value":{"kind":"json","text":"`+strings.Repeat("9", 4<<20)+`","size":-1}}`)), check: isShort},
		"answers what is no text":    {accept: lies(programMessage(programStdout, "a\xff\x00\x1b[31m"), outcome("{\"status\":\"ok\",\"notes\":[\"\xff\x1b\"]}"), text("{\"type\":\"done\",\"value\":{\"kind\":\"text\",\"text\":\"\xff\xfe\",\"size\":2}}")), check: isText},
		"calls for another program":  {accept: lies(text(hostileCall), outcome(`{"status":"ok","id":"e-other"}`), text(hostileOK)), check: isResult("1", "42")},
		"has invalid beats":          {beats: []string{`{"version":"v1","seats":99999999}`, `{"seats":1,"busy":-1}`, `{"seats":1,"labels":{"a":"\u001b[31m"}}`, "\xff"}, log: `a beat of a worker is invalid.*worker=NAME`},
		"floods with beats":          {beats: []string{`{"version":"v1","seats":8,"draining":true}`}, more: floodBeats, log: `a worker sends too many beats.*worker=NAME`},
	}
}

func slicesOf(n int, text string) (all []string) {
	for range n {
		all = append(all, text)
	}
	return all
}

func sendBeyond(l *hostileLink) {
	l.say(linkData, linkWindow, []byte("x"))
}

func repeatAcks(l *hostileLink) {
	for range 2_000_000 {
		l.say(linkAck, 0, binary.BigEndian.AppendUint64(nil, linkWindow))
	}
}

// dropPrograms ends the link when a program has come.
func dropPrograms(l *hostileLink) {
	l.serve(func(l *hostileLink, _ io.Writer, _ *http.Request) {
		l.say(linkReset, 0, []byte("gone \x1b[31m"))
	})
}

func printEndlessly(kind byte) func(l *hostileLink) {
	chunk := programMessage(kind, strings.Repeat("x", 1<<20))
	return func(l *hostileLink) {
		l.serve(func(_ *hostileLink, rw io.Writer, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(rw, chunk); err != nil {
					return
				}
			}
		})
	}
}

// replay answers each program after all that it has ever said on this link.
func replay(l *hostileLink) {
	l.serve(func(l *hostileLink, rw io.Writer, r *http.Request) {
		l.mu.Lock()
		all := bytes.Clone(l.said.Bytes())
		l.mu.Unlock()
		_, _ = l.Write(all)
		_, _ = io.WriteString(rw, outcome(`{"status":"ok"}`)+text(hostileOK))
		<-r.Context().Done()
	})
}

// floodBeats sends as many beats as it can: true ones, of processes that there are not, and large ones.
func floodBeats(h *hostileWorker, instance string) {
	large := append(bytes.Repeat([]byte(" "), 1<<20), hostileBeat...)
	for range 20_000 {
		_ = h.conn.Publish(h.beatOf(instance), []byte(`{"version":"v1","seats":8,"draining":true}`))
	}
	for range 20 {
		_ = h.conn.Publish(h.beatOf(instance), large)
	}
	_ = h.conn.Flush()
}

func isResult(results ...string) func(e executed) bool {
	return func(e executed) bool {
		for _, r := range results {
			if e.Status == "ok" && string(e.Result) == r {
				return true
			}
		}
		return false
	}
}

func isShort(e executed) bool { return e.Status == "ok" && len(e.raw) < 1<<20 }

func isText(e executed) bool {
	return e.Status == "ok" && utf8.ValidString(e.raw) && !strings.ContainsAny(e.raw, "\x00\x1b") && !strings.Contains(e.raw, `\u001b`) && !strings.Contains(e.raw, `\u0000`)
}

// TestWorkersHostile has a gateway, an honest worker, and one hostile worker after the other, each with credentials of its own. What it does
// costs it its link, the log names it, and programs go on.
func TestWorkersHostile(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	s := newWorkersSite(t)
	s.join(t, "w1")
	s.serve(t)
	testutil.Eventually(t, "the honest worker has joined", workersPatience, func() bool { return len(s.workers(t)) == 1 })
	for range 3 {
		if answer := <-s.execute(t, "6*7"); string(answer.Result) != "42" {
			t.Fatalf("before: %s", answer.raw)
		}
	}
	before := residentPeak(t, s.cmd.Process.Pid)
	patterns := map[string]string{}
	for title, c := range hostileCases() {
		name := fmt.Sprintf("evil%d", len(patterns))
		patterns[title] = strings.ReplaceAll(c.log, "NAME", name)
		if out, err := s.command("cluster", "init", s.keys, "--worker", name).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Run(title, func(t *testing.T) { s.suffer(t, name, c) })
	}
	if found := s.workers(t); found[len(found)-1].Name != "w1" {
		t.Errorf("the honest worker has left: %+v", found)
	}
	if after := residentPeak(t, s.cmd.Process.Pid); after > before+512<<20 {
		t.Errorf("the gateway took %d MiB, and %d MiB before", after>>20, before>>20)
	} else {
		t.Logf("the gateway took %d MiB, and %d MiB before", after>>20, before>>20)
	}
	if err := stop(s.cmd); err != nil {
		t.Error(err)
	}
	s.wantHostileLog(t, patterns)
}

// wantHostileLog waits for the log of a gateway that has ended: it has the pattern of each hostile worker, and no control characters.
func (s *workersSite) wantHostileLog(t *testing.T, patterns map[string]string) {
	t.Helper()
	log := <-s.logs[0]
	for title, pattern := range patterns {
		if pattern != "" && !regexp.MustCompile(pattern).MatchString(log) {
			t.Errorf("a worker that %s: the log has no %s", title, pattern)
		}
	}
	if strings.Contains(log, "\x1b") || t.Failed() {
		t.Errorf("the log:\n%q", log)
	}
}

// suffer runs programs while a hostile worker is there.
func (s *workersSite) suffer(t *testing.T, name string, c hostileCase) {
	t.Helper()
	h := s.newHostileWorker(t, name)
	var asked atomic.Bool
	if c.greet != nil {
		c.greet(h.greeting)
	}
	h.accept = func(l *hostileLink) {
		asked.Store(true)
		if c.accept != nil {
			c.accept(l)
		}
	}
	if c.beats == nil {
		c.beats = []string{hostileBeat}
	}
	var instances []string
	for _, beat := range c.beats {
		instances = append(instances, h.join(t, beat))
	}
	if c.check == nil {
		c.check = isResult("42")
	}
	isAsked := c.accept != nil || c.log != "" && c.more == nil && len(c.beats) == 1
	testutil.Eventually(t, "the worker is asked", workersPatience, func() bool {
		if c.more != nil {
			c.more(h, instances[0])
		}
		one, two, three := s.execute(t, "6*7"), s.execute(t, "6*7"), s.execute(t, "6*7")
		for _, answered := range []<-chan executed{one, two, three} {
			if answer := <-answered; !c.check(answer) {
				t.Errorf("%.2000s", answer.raw)
			}
		}
		return asked.Load() || !isAsked || t.Failed()
	})
	for _, instance := range instances {
		_ = h.conn.Publish(h.beatOf(instance), []byte(`{"version":"v1","seats":1,"left":true}`))
	}
	_ = h.conn.Flush()
	h.conn.Close()
}

// residentPeak is the most memory that a process took, in bytes.
func residentPeak(t *testing.T, pid int) (size int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if err := json.Unmarshal(found[1], &size); err != nil {
		t.Fatal(err)
	}
	return size << 10
}

// TestWorkersForeign has a gateway, a worker that is at work, and two clients of the servers: another worker, and one without
// permissions. Neither hears anything of the others, nor says anything to them.
func TestWorkersForeign(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	s := newWorkersSite(t)
	s.join(t, "w1")
	s.serve(t)
	testutil.Eventually(t, "the worker has joined", workersPatience, func() bool { return len(s.workers(t)) == 1 })
	var heard, denied atomic.Int64
	for _, creds := range []string{filepath.Join(s.keys, "w2.creds"), ""} {
		if conn := s.connectForeign(t, creds, &denied); conn != nil {
			for _, subject := range []string{">", "*.>", "$JS.>", "_INBOX.>", "_WORKERS.>", hostileSubjects + "beat.*.*", hostileSubjects + "in.w1.>", hostileSubjects + "out.>", hostileSubjects + "dial.w1.*", "_GATEWAYS.sallyport.>"} {
				_, _ = conn.Subscribe(subject, func(*nats.Msg) { heard.Add(1) })
			}
			for _, subject := range []string{"sallyport.x", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.DELETE.sallyport_made", hostileSubjects + "ask", hostileSubjects + "beat.w1.x", hostileSubjects + "dial.w1.x", "_GATEWAYS.sallyport.dial.x"} {
				_ = conn.Publish(subject, []byte("{}"))
			}
			_ = conn.Flush()
		}
	}
	if answer := <-s.execute(t, "from servers.toy import echo\necho(text='secret')\n42"); string(answer.Result) != "42" {
		t.Errorf("%s", answer.raw)
	}
	testutil.Eventually(t, "all is denied", workersPatience, func() bool { return denied.Load() >= 10+7 })
	if n := heard.Load(); n > 0 {
		t.Errorf("they heard %d messages", n)
	}
	if err := stop(s.cmd); err != nil {
		t.Error(err)
	}
}

// connectForeign connects to the servers, and counts what these deny. Without credentials there must be no connection.
func (s *workersSite) connectForeign(t *testing.T, creds string, denied *atomic.Int64) *nats.Conn {
	t.Helper()
	opts := []nats.Option{nats.NoReconnect(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, _ error) { denied.Add(1) })}
	if creds != "" {
		opts = append(opts, nats.UserCredentials(creds))
	}
	conn, err := nats.Connect(s.servers, opts...)
	if (err == nil) != (creds != "") {
		t.Fatalf("with credentials %q: %v", creds, err)
	}
	if conn != nil {
		t.Cleanup(conn.Close)
	}
	return conn
}
