package audit_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/testutil/tlstest"
)

// recordingSink is a sink in memory that fails on demand.
type recordingSink struct {
	mu      sync.Mutex
	got     []audit.Record
	fail    func(batch []audit.Record) error
	batches int
}

func (s *recordingSink) Send(_ context.Context, records []audit.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches++
	if s.fail != nil {
		if err := s.fail(records); err != nil {
			return err
		}
	}
	s.got = append(s.got, records...)
	return nil
}

func (s *recordingSink) called() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.batches > 0
}

func (s *recordingSink) seqs() (all []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.got {
		all = append(all, r.Seq)
	}
	return all
}

// deliver sends to sinks until ok holds.
func deliver(t *testing.T, l *audit.Log, sinks map[string]audit.Sink, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		if err := l.Deliver(ctx, sinks); err != nil {
			t.Error(err)
		}
	})
	eventually(t, ok)
	cancel()
	work.Wait()
}

func inOrder(seqs []uint64, through uint64) bool {
	if len(seqs) != int(through) {
		return false
	}
	for i, seq := range seqs {
		if seq != uint64(i+1) {
			return false
		}
	}
	return true
}

// TestDeliver: each sink gets every record once and in order, also what came while it or the process was down; one that fails
// keeps no other waiting, and its state says why.
func TestDeliver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, nil)
	for i := range 300 {
		add(t, l, call(fmt.Sprint("a.t", i)))
	}
	good, bad := &recordingSink{}, &recordingSink{fail: func([]audit.Record) error { return errors.New("it is\x1b[2J down") }}
	deliver(t, l, map[string]audit.Sink{"good": good, "bad": bad}, func() bool { return inOrder(good.seqs(), 301) && bad.called() })
	states, err := audit.States(dir)
	if err != nil || len(states) != 2 || states[0].Name != "bad" || states[0].Error != "it is down" || states[0].Failures == 0 || states[0].Since.IsZero() || states[1].Seq != 301 || states[1].Error != "" {
		t.Fatalf("%+v %v", states, err)
	}
	add(t, l, call("a.more"))
	bad.fail = nil
	deliver(t, l, map[string]audit.Sink{"good": good, "bad": bad}, func() bool { return inOrder(good.seqs(), 302) && inOrder(bad.seqs(), 302) })
}

// TestRefused: a record that a sink will never take is passed over, alone.
func TestRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, nil)
	for i := range 20 {
		add(t, l, call(fmt.Sprint("a.t", i)))
	}
	sink := &recordingSink{fail: func(batch []audit.Record) error {
		for _, r := range batch {
			if r.Seq == 7 {
				return fmt.Errorf("%w: not this one", audit.ErrRefused)
			}
		}
		return nil
	}}
	deliver(t, l, map[string]audit.Sink{"picky": sink}, func() bool { return len(sink.seqs()) == 20 })
	if states, err := audit.States(dir); err != nil || states[0].Seq != 21 || states[0].Lost != 1 {
		t.Errorf("%+v %v", states, err)
	}
}

// TestMirror: the copy in a store has every line as it stands, through restarts, and what only it has is missed in the files.
func TestMirror(t *testing.T) {
	t.Parallel()
	records := store.Memory()
	m, err := audit.NewMirror(records, "", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l := open(t, dir, nil)
	for round := range 2 {
		add(t, l, call("a.one"), call("a.two"))
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() {
			if err := l.Mirror(ctx, m); err != nil {
				t.Error(err)
			}
		})
		want := uint64(3 + 2*round)
		eventually(t, func() bool { seq, _, err := m.Last(t.Context()); return err == nil && seq == want })
		cancel()
		work.Wait()
	}
	if got := verify(t, dir, &audit.Checks{Mirror: m.Lines(t.Context())}); !got.OK() || got.Mirrored != 5 {
		t.Errorf("%+v", got)
	}
}

// TestMirrorRepeats: what is sent again, after an attempt whose end is unknown or by another process, is in the copy once.
func TestMirrorRepeats(t *testing.T) {
	t.Parallel()
	in := store.Memory()
	dir := t.TempDir()
	add(t, open(t, dir, nil), call("a.one"), call("a.two"), call("a.three"))
	all := records(t, dir)
	var mirrors []*audit.Mirror
	for range 2 {
		m, err := audit.NewMirror(in, "", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		mirrors = append(mirrors, m)
	}
	for i, batch := range [][]audit.Record{all[:2], all[:2], all[1:3], all[2:], all[2:]} {
		if err := mirrors[i%2].Send(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if got := verify(t, dir, &audit.Checks{Mirror: mirrors[0].Lines(t.Context())}); !got.OK() || got.Mirrored != 4 {
		t.Errorf("%+v", got)
	}
}

// event is a record as sinks get it.
func event(t *testing.T, events ...audit.Event) []audit.Record {
	t.Helper()
	dir := t.TempDir()
	add(t, open(t, dir, nil), events...)
	return records(t, dir)[1:]
}

func sinkOf(t *testing.T, set config.AuditSinks, name string) audit.Sink {
	t.Helper()
	sinks, err := audit.NewSinks(set, "1.2.3")
	if err != nil || sinks[name] == nil {
		t.Fatal(sinks, err)
	}
	return sinks[name]
}

// rfc5424 is a message: priority, version, time, host, program, process, id of the message, no structured data, text.
var rfc5424 = regexp.MustCompile(`^<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) ([!-~]{1,255}) sallyport (\d+) ([!-~]{1,32}) - (\{.*\})$`)

func checkSyslog(t *testing.T, message string, priority int, want audit.Record, whole bool) {
	t.Helper()
	parts := rfc5424.FindStringSubmatch(message)
	if parts == nil || parts[1] != fmt.Sprint(priority) || parts[5] != string(want.Kind) {
		t.Fatalf("%.300q", message)
	}
	if whole && parts[6] != string(want.Line) {
		t.Errorf("%s\n%s", parts[6], want.Line)
	}
	var got audit.Record
	if err := json.Unmarshal([]byte(parts[6]), &got); err != nil || got.Seq != want.Seq || got.Hash != want.Hash {
		t.Errorf("%v %+v", err, got)
	}
}

// TestSyslogStream: over TCP and TLS each message stands behind its length (RFC 6587), and after the server has gone a new connection is made.
func TestSyslogStream(t *testing.T) {
	t.Parallel()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	secret, address := tlstest.Listen(t)
	t.Run("tcp", func(t *testing.T) { syslogStream(t, plain, "tcp://"+plain.Addr().String()) })
	t.Run("tls", func(t *testing.T) { syslogStream(t, secret, "tls://"+address) })
}

func syslogStream(t *testing.T, listener net.Listener, address string) {
	t.Helper()
	all := event(t, call("a.one"), audit.Event{Kind: audit.Call, Tool: "x\ny", Decision: "deny"}, audit.Event{Kind: audit.ExecutionStart, Text: strings.Repeat("é\n", 20_000)})
	sink := sinkOf(t, config.AuditSinks{Syslog: &config.Syslog{Address: address, Facility: 13}}, "syslog")
	for range 2 {
		done := make(chan error, 1)
		go func() { done <- sink.Send(t.Context(), all) }()
		conn := accept(t, listener, done)
		in := bufio.NewReader(conn)
		for i, priority := range []int{13*8 + 6, 13*8 + 4, 13*8 + 6} {
			size, err := in.ReadString(' ')
			if err != nil {
				t.Fatal(err)
			}
			n, err := strconv.Atoi(strings.TrimSuffix(size, " "))
			if err != nil {
				t.Fatal(err)
			}
			message := make([]byte, n)
			if _, err := io.ReadFull(in, message); err != nil {
				t.Fatal(err)
			}
			checkSyslog(t, string(message), priority, all[i], true)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
}

// accept returns the next connection, and fails if the records are sent without one.
func accept(t *testing.T, listener net.Listener, sent <-chan error) net.Conn {
	t.Helper()
	accepted := make(chan net.Conn, 1)
	go func() {
		if conn, err := listener.Accept(); err == nil {
			accepted <- conn
		}
	}()
	select {
	case conn := <-accepted:
		return conn
	case <-time.After(10 * time.Second):
	}
	select {
	case err := <-sent:
		t.Fatal("the records were sent without a new connection:", err)
	default:
		t.Fatal("no connection within 10 s")
	}
	return nil
}

// TestSyslogDatagram: over UDP and a Unix socket a message is a datagram, and one that would be too long goes without its program.
func TestSyslogDatagram(t *testing.T) {
	t.Parallel()
	all := event(t, call("a.one"), audit.Event{Kind: audit.ExecutionStart, Text: strings.Repeat("x\n", 20_000), Execution: "e-1"})
	path := filepath.Join(t.TempDir(), "log")
	for _, where := range []struct{ network, listen, address string }{{"udp", "127.0.0.1:0", ""}, {"unixgram", path, "unix:" + path}} {
		server, err := net.ListenPacket(where.network, where.listen)
		if err != nil {
			t.Fatal(err)
		}
		address := where.address
		if address == "" {
			address = "udp://" + server.LocalAddr().String()
		}
		sink := sinkOf(t, config.AuditSinks{Syslog: &config.Syslog{Address: address, Facility: 0}}, "syslog")
		if err := sink.Send(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 1<<16)
		for i := range all {
			_ = server.SetReadDeadline(time.Now().Add(10 * time.Second))
			n, _, err := server.ReadFrom(buffer)
			if err != nil || n > 8<<10 {
				t.Fatal(n, err)
			}
			checkSyslog(t, string(buffer[:n]), 6, all[i], i == 0)
		}
		_ = server.Close()
	}
}

// TestOTLP: what a collector gets is OTLP in JSON, strictly; what it rejects is refused, and when it is down it is an error.
func TestOTLP(t *testing.T) {
	t.Parallel()
	answer, status := "{}", http.StatusOK
	var got otlpWire
	server := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/logs" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		dec := json.NewDecoder(r.Body)
		dec.DisallowUnknownFields()
		got = otlpWire{}
		if err := dec.Decode(&got); err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	all := event(t, call("a.one"), audit.Event{Kind: audit.Result, Tool: "a.one", Outcome: "ok", Micros: 1 << 60, Bytes: 3})
	sink := sinkOf(t, config.AuditSinks{OTLP: &config.OTLP{URL: server.URL, Headers: config.Secrets{"Authorization": "Bearer k"}}}, "otlp")
	if err := sink.Send(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	logs := got.ResourceLogs[0].ScopeLogs[0].LogRecords
	if len(logs) != 2 || logs[0].TimeUnixNano != fmt.Sprint(all[0].Time.UnixNano()) || logs[0].SeverityNumber != 9 || logs[0].EventName != "sallyport.call" || *logs[0].Body.StringValue != "call a.one allow token:ci" {
		t.Errorf("%+v", logs)
	}
	values := map[string]string{}
	for _, a := range append(logs[1].Attributes, got.ResourceLogs[0].Resource.Attributes...) {
		if (a.Value.StringValue == nil) == (a.Value.IntValue == nil) {
			t.Errorf("%s has not one value", a.Key)
		} else if a.Value.IntValue != nil {
			values[a.Key] = *a.Value.IntValue
		} else {
			values[a.Key] = *a.Value.StringValue
		}
	}
	for key, want := range map[string]string{"sallyport.duration_us": fmt.Sprint(1 << 60), "sallyport.tool": "a.one", "sallyport.hash": all[1].Hash, "sallyport.seq": "3", "service.name": "sallyport", "service.version": "1.2.3"} {
		if values[key] != want {
			t.Errorf("%s is %q, want %q", key, values[key], want)
		}
	}
	answer = `{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"no\u001b[2J room"}}`
	if err := sink.Send(t.Context(), all); !errors.Is(err, audit.ErrRefused) || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%v", err)
	}
	if status = http.StatusServiceUnavailable; sink.Send(t.Context(), all) == nil {
		t.Error("503 is no error")
	}
	if status = http.StatusBadRequest; !errors.Is(sink.Send(t.Context(), all), audit.ErrRefused) {
		t.Error("400 is not refused")
	}
}

// otlpWire is ExportLogsServiceRequest as its JSON encoding has it.
type otlpWire struct {
	ResourceLogs []struct {
		Resource  struct{ Attributes []otlpPair }
		ScopeLogs []struct {
			Scope      struct{ Name, Version string }
			LogRecords []struct {
				TimeUnixNano, ObservedTimeUnixNano string
				SeverityNumber                     int
				SeverityText                       string
				Body                               otlpAny
				Attributes                         []otlpPair
				EventName                          string
			}
		}
	}
}

type otlpPair struct {
	Key   string
	Value otlpAny
}

type otlpAny struct{ StringValue, IntValue *string }

// TestSurrealDB: an execution that has ended is one statement, the same for all, with its values in a variable; one that is there already is no error.
func TestSurrealDB(t *testing.T) {
	t.Parallel()
	var rows []map[string]any
	seen := map[any]bool{}
	server := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		if r.Method != http.MethodPost || r.URL.Path != "/sql" || string(body) != "CREATE execution_log CONTENT $row;" || user != "writer" || password != "p" ||
			r.Header.Get("Surreal-NS") != "ops" || r.Header.Get("Surreal-DB") != "audit" || r.Header.Get("Accept") != "application/json" {
			t.Errorf("%s %s %q %v", r.Method, r.URL.Path, body, r.Header)
		}
		var row map[string]any
		if err := json.Unmarshal([]byte(r.URL.Query().Get("row")), &row); err != nil {
			t.Error(err)
		}
		if seen[row["id"]] {
			_, _ = fmt.Fprintf(w, `[{"status":"ERR","time":"1ms","result":"Database record `+"`execution_log:%v`"+` already exists"}]`, row["id"])
			return
		}
		if row["exit_code"] == 9.0 {
			_, _ = io.WriteString(w, `[{"status":"ERR","time":"1ms","result":"There was a problem with the database"}]`)
			return
		}
		seen[row["id"]] = true
		rows = append(rows, row)
		_, _ = io.WriteString(w, `[{"status":"OK","time":"1ms","result":[{}]}]`)
	}))
	defer server.Close()
	set := config.AuditSinks{SurrealDB: &config.SurrealDB{URL: server.URL, Namespace: "ops", Database: "audit", User: "writer", Password: "p"}}
	sink := sinkOf(t, set, "surrealdb")
	code := `print("'; REMOVE TABLE execution_log; --")`
	all := event(t, audit.Event{Kind: audit.ExecutionStart, Execution: "e-1", Text: code}, call("a.one"),
		audit.Event{Kind: audit.ExecutionEnd, Execution: "e-1", Principal: "token:ci", Code: "abc", Output: "out\n" + strings.Repeat("é", 9000), Exit: 3, Outcome: "exited"},
		audit.Event{Kind: audit.ExecutionEnd, Execution: "e-2", Code: "abc"})
	for range 2 {
		if err := sink.Send(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	if len(rows) != 2 || rows[0]["id"] != "e-1" || rows[0]["agent"] != "token:ci (no client)" || rows[0]["code_snippet"] != code || rows[0]["exit_code"] != 3.0 ||
		!strings.HasPrefix(rows[0]["output"].(string), "out\né") || len(rows[0]["output"].(string)) > 4200 || rows[1]["code_snippet"] != "sha256 abc" || rows[1]["output"] != "" {
		t.Errorf("%+v", rows)
	}
	if at, err := time.Parse(time.RFC3339Nano, rows[0]["timestamp"].(string)); err != nil || !at.Equal(all[2].Time) {
		t.Errorf("%v %v", at, err)
	}
	if err := sink.Send(t.Context(), event(t, audit.Event{Kind: audit.ExecutionEnd, Execution: "e-9", Exit: 9})); err == nil || !strings.Contains(err.Error(), "problem with the database") {
		t.Errorf("%v", err)
	}
	server.Close()
	if err := sink.Send(t.Context(), all); err == nil || strings.Contains(err.Error(), "REMOVE") || strings.Contains(err.Error(), "row=") {
		t.Errorf("%v", err)
	}
}
