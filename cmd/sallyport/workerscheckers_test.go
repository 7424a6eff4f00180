package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/testutil"
)

// checkersArgs are the arguments of a worker with type checkers.
func checkersArgs(t *testing.T) []string {
	t.Helper()
	return []string{"--pyright", filepath.Join(testutil.Checkers(t), "pyright"), "--tsc", filepath.Join(testutil.Checkers(t), "typescript")}
}

// misspelt is a program of each language that fails, and another of its lines has a type error.
func misspelt() map[string][2]string {
	return map[string][2]string{
		"python":     {"from servers.toy import echo\ndef later():\n    echo(txet='a')\nlines = [1]\nlines[5]", `there is no parameter`},
		"typescript": {"import { echo } from \"servers/toy\";\nfunction later() { return echo({ txet: 'a' }); }\nthrow new Error('so');", `txet`},
	}
}

// TestWorkersCheckers has a gateway with programs that are checked on workers: first on one, then on another after the first was killed.
func TestWorkersCheckers(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	checkers := checkersArgs(t)
	s := newWorkersSite(t)
	join := func(name string, more ...string) {
		s.joinWith(t, name, append([]string{"--creds", filepath.Join(s.keys, name+".creds")}, more...)...)
	}
	join("w1")
	s.serve(t)
	testutil.Eventually(t, "the first worker has joined", workersPatience, func() bool { return len(s.workers(t)) == 1 })
	for language, test := range misspelt() {
		if text := s.tell(t, flowsToken, language, test[0]); !strings.Contains(text, "isError\":true") || strings.Contains(text, "types:") {
			t.Errorf("%s without a checker: %s", language, text)
		}
	}
	join("w2", checkers...)
	testutil.Eventually(t, "the second has joined", workersPatience, func() bool { return len(s.workers(t)) == 2 })
	if found := s.workers(t); len(found[0].Services) > 0 || !slices.Equal(found[1].Services, []string{"typecheck-python", "typecheck-typescript"}) {
		t.Errorf("%+v", found)
	}
	if out, _ := s.command("doctor").CombinedOutput(); !strings.Contains(string(out), "types of python are checked on 1, of typescript on 1") { // other checks may fail
		t.Errorf("%s", out)
	}
	s.wantChecked(t)
	if err := s.processes["w1"].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.processes["w2"].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	join("w1", checkers...)
	s.wantChecked(t)
	began := time.Now()
	if err := stop(s.cmd); err != nil || time.Since(began) > 20*time.Second {
		t.Errorf("the gateway ended after %v: %v", time.Since(began), err)
	}
	folder := filepath.Join(s.dir, "sallyport", "host-*", "service-*")
	testutil.Eventually(t, "the checkers have ended", workersPatience, func() bool {
		left, _ := filepath.Glob(folder)
		return len(left) == 0
	})
}

// wantChecked wants type errors for programs of both languages.
func (s *workersSite) wantChecked(t *testing.T) {
	t.Helper()
	for language, test := range misspelt() {
		testutil.Eventually(t, language+" is checked", 2*workersPatience, func() bool {
			text := s.tell(t, flowsToken, language, test[0])
			return strings.Contains(text, "isError\":true") && strings.Contains(text, "types:") && strings.Contains(text, test[1])
		})
	}
}

// tell runs a program as a model of a principal does, and returns what it reads.
func (s *workersSite) tell(t *testing.T, token, language, code string) string {
	t.Helper()
	const version = "2026-07-28"
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": "execute_code", "arguments": map[string]any{"language": language, "code": code},
		"_meta": map[string]any{"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": map[string]any{},
			"io.modelcontextprotocol/clientInfo": map[string]any{"name": "raw", "version": "1"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, answer := s.ask(t, http.MethodPost, "/mcp", string(body), "Authorization: Bearer "+token, "Content-Type: application/json",
		"Accept: application/json, text/event-stream", "Mcp-Protocol-Version: "+version, "Mcp-Method: tools/call", "Mcp-Name: execute_code")
	return string(answer)
}

// hostileCheckers is what a worker does when it is asked for the checker of Python.
func hostileCheckers() map[string]http.HandlerFunc {
	write := func(first, rest string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			go func() { _, _ = io.Copy(io.Discard, r.Body) }()
			_, err := io.WriteString(rw, first)
			for err == nil && rest != "" {
				_, err = io.WriteString(rw, rest)
			}
			<-r.Context().Done()
		}
	}
	return map[string]http.HandlerFunc{
		"refuses":                   func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "no \x1b[31m", http.StatusNotFound) },
		"ends at once":              func(http.ResponseWriter, *http.Request) {},
		"says that much comes":      write("Content-Length: 99999999999\r\n\r\n", ""),
		"sends headers without end": write("X: y", strings.Repeat("x", 64<<10)),
		"sends notes without end":   write("", frame(`{"jsonrpc":"2.0","method":"window/logMessage","params":"`+strings.Repeat("x", 1<<20)+`"}`)),
		"reads nothing":             func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"finds what is no text":     findHostile,
	}
}

func frame(text string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(text), text) }

// findHostile answers each check with many findings, which have control characters and long texts.
func findHostile(rw http.ResponseWriter, r *http.Request) {
	out, in := flushed{rw, http.NewResponseController(rw)}, bufio.NewReader(r.Body)
	finding := `{"severity":1,"code":"reportCallIssue","range":{"start":{"line":0},"end":{"line":0}},"message":"a\u001b[31m\u0000 \u202e` + strings.Repeat("long ", 1000) + `"}`
	items := finding + strings.Repeat(","+finding, 200)
	for {
		length := 0
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if _, err := fmt.Sscanf(line, "Content-Length: %d", &length); err != nil && strings.TrimSpace(line) == "" {
				break
			}
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(in, body); err != nil || json.Unmarshal(body, &m) != nil {
			return
		}
		result := "{}"
		if m.Method == "textDocument/diagnostic" {
			result = `{"items":[` + items + `]}`
		}
		if m.ID != nil {
			_, _ = io.WriteString(out, frame(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+`}`))
		}
	}
}

// TestWorkersHostileCheckers has an honest worker without checkers, and one hostile worker after the other that checks programs. Programs go
// on, and the log names the worker.
func TestWorkersHostileCheckers(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	s := newWorkersSite(t)
	s.addTokens(t, len(hostileCheckers()))
	s.join(t, "w1")
	s.serve(t)
	testutil.Eventually(t, "the honest worker has joined", workersPatience, func() bool { return len(s.workers(t)) == 1 })
	before := residentPeak(t, s.cmd.Process.Pid)
	patterns := map[string]string{}
	for title, behave := range hostileCheckers() {
		name, token := fmt.Sprintf("evil%d", len(patterns)), hostileToken(len(patterns))
		isHeard := title == "finds what is no text"
		if patterns[title] = `type checker failed.*machine="worker ` + name + `"`; isHeard {
			patterns[title] = "" // no more than wrong findings
		}
		if out, err := s.command("cluster", "init", s.keys, "--worker", name).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Run(title, func(t *testing.T) { s.sufferChecker(t, name, token, behave, isHeard) })
	}
	if after := residentPeak(t, s.cmd.Process.Pid); after > before+256<<20 {
		t.Errorf("the gateway took %d MiB, and %d MiB before", after>>20, before>>20)
	}
	began := time.Now()
	if err := stop(s.cmd); err != nil || time.Since(began) > 20*time.Second {
		t.Errorf("the gateway ended after %v: %v", time.Since(began), err)
	}
	s.wantHostileLog(t, patterns)
}

func hostileToken(i int) string { return fmt.Sprintf("a-token-of-a-principal-of-the-test-%d", i) }

// addTokens adds principals to the settings: each has its own type checkers.
func (s *workersSite) addTokens(t *testing.T, n int) {
	t.Helper()
	path := filepath.Join(s.dir, "upstreams.yaml")
	text, err := os.ReadFile(path)
	var more strings.Builder
	for i := range n {
		fmt.Fprintf(&more, ", p%d: %s", i, hostileToken(i))
	}
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), "ops: "+flowsToken, "ops: "+flowsToken+more.String(), 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sufferChecker runs programs while a worker is there that has a hostile checker, and no interpreters. isHeard says that it finds something.
func (s *workersSite) sufferChecker(t *testing.T, name, token string, behave http.HandlerFunc, isHeard bool) {
	t.Helper()
	h := s.newHostileWorker(t, name)
	h.greeting["services"] = []string{"typecheck-python"}
	var asked atomic.Bool
	h.service = func(rw http.ResponseWriter, r *http.Request) {
		asked.Store(true)
		if !strings.HasSuffix(r.URL.Path, "/typecheck-python") {
			t.Errorf("it is asked for %s", r.URL.Path)
		}
		_ = http.NewResponseController(rw).Flush()
		behave(rw, r)
	}
	h.accept = func(l *hostileLink) { l.serve(func(*hostileLink, io.Writer, *http.Request) {}) }
	speaks := fmt.Sprintf(`{"protocol":%v,"newest":%v,"host_interface":%v}`, h.greeting["protocol"], h.greeting["newest"], h.greeting["host_interface"])
	instance := h.join(t, `{"version":"v1","seats":1,"lacks":["python","node"],"speaks":`+speaks+`,"services":["typecheck-python"]}`)
	run := func() string {
		began := time.Now()
		text := s.tell(t, token, "python", misspelt()["python"][0])
		if took := time.Since(began); !strings.Contains(text, "IndexError") || took > 20*time.Second || len(text) > 8<<10 || !isText(executed{Status: "ok", raw: text}) {
			t.Errorf("after %v: %.2000s", took, text)
		}
		return text
	}
	testutil.Eventually(t, "the worker is asked", workersPatience, func() bool {
		run()
		return asked.Load() || t.Failed()
	})
	for range 3 {
		run()
	}
	if isHeard {
		testutil.Eventually(t, "what it finds is told", workersPatience, func() bool {
			return strings.Contains(run(), `types: line 1: a long long`) || t.Failed()
		})
	}
	_ = h.conn.Publish(h.beatOf(instance), []byte(`{"version":"v1","seats":1,"left":true}`))
	_ = h.conn.Flush()
	h.conn.Close()
}
