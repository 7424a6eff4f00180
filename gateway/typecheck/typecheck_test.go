package typecheck

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// twin is a language server in memory: behave answers each request, and says false to end.
type twin struct {
	starts atomic.Int32
	behave func(start int, s *speaker, m request) bool
}

type request struct {
	ID     json.RawMessage
	Method string
	Params struct{ TextDocument struct{ URI, Text string } }
}

// speaker is the server's side of the pipe.
type speaker struct {
	net.Conn
	text string      // of the document that is open
	out  chan string // what it says, as a pipe of the kernel would keep it
}

func (s *speaker) send(format string, args ...any) {
	body := fmt.Sprintf(format, args...)
	s.out <- fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

func (s *speaker) write() {
	for frame := range s.out {
		_, _ = io.WriteString(s, frame)
	}
}

// usual finds one wrong thing: the document's text.
func usual(s *speaker, m request) bool {
	switch m.Method {
	case "textDocument/didOpen":
		s.text = m.Params.TextDocument.Text
	case "textDocument/diagnostic":
		message, _ := json.Marshal(s.text)
		s.send(`{"id":%s,"result":{"items":[{"range":{"start":{"line":2}},"severity":1,"code":"reportCallIssue","message":%s}]}}`, m.ID, message)
	case "initialize":
		s.send(`{"id":77,"method":"workspace/configuration","params":{"items":[{},{}]}}`)
		s.send(`{"id":"x","method":"client/registerCapability","params":{}}`)
		s.send(`{"method":"window/logMessage","params":{"message":"hello"}}`)
		s.send(`{"id":%s,"result":{}}`, m.ID)
	}
	return true
}

func (w *twin) start(context.Context) (io.ReadWriteCloser, error) {
	start := int(w.starts.Add(1))
	ours, theirs := net.Pipe()
	go func() { // it ends when we close our side, as a server does
		defer func() { _ = theirs.Close() }()
		s, r := &speaker{Conn: theirs, out: make(chan string, 64)}, bufio.NewReaderSize(theirs, maxHeader)
		go s.write()
		defer close(s.out)
		for {
			body, err := readFrame(r)
			var m request
			if err != nil || json.Unmarshal(body, &m) != nil || !w.behave(start, s, m) {
				return
			}
		}
	}()
	return ours, nil
}

func text(c *Checker, code string) string {
	var all []string
	for _, w := range c.Check(code).Warnings(context.Background()) {
		all = append(all, fmt.Sprintf("%d: %s", w.Line, w.Message))
	}
	return strings.Join(all, "; ")
}

func TestChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &twin{behave: func(_ int, s *speaker, m request) bool { return usual(s, m) }}
		c := New(Python, w.start, nil)
		defer c.Close()
		for i := range 5 {
			if got, want := text(c, fmt.Sprintf("program %d", i)), fmt.Sprintf("3: program %d", i); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		if n := w.starts.Load(); n != 1 {
			t.Errorf("%d servers", n)
		}
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if got := text(c, "after it was idle"); got != "3: after it was idle" || w.starts.Load() != 2 {
			t.Errorf("%q of server %d", got, w.starts.Load())
		}
		c.Close()
		if got := c.Check("after Close").Warnings(canceledContext()); got != nil {
			t.Errorf("a closed checker finds %v", got)
		}
	})
}

func canceledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestNobodyChecks(t *testing.T) {
	var c *Checker
	c.NotifyChanges([]Change{{Path: "a.py"}})
	check := c.Check("x")
	check.Drop()
	if got := check.Warnings(t.Context()); got != nil {
		t.Errorf("%v", got)
	}
	c.Close()
}

// TestBadServers each do one thing wrong in their first life, and well in the next.
func TestBadServers(t *testing.T) {
	for name, wrong := range map[string]func(s *speaker, m request) bool{
		"ends at once":    func(*speaker, request) bool { return false },
		"says junk":       func(s *speaker, _ request) bool { _, _ = io.WriteString(s, "Exception\n"); return true },
		"never answers":   func(*speaker, request) bool { return true },
		"answers no JSON": func(s *speaker, m request) bool { s.send(`{"id":%s,"result":`, m.ID); return true },
		"refuses":         func(s *speaker, m request) bool { s.send(`{"id":%s,"error":{"message":"no\nway"}}`, m.ID); return true },
		"announces much": func(s *speaker, _ request) bool {
			_, _ = io.WriteString(s, "Content-Length: 999999999\r\n\r\n")
			return true
		},
		"answers another": func(s *speaker, m request) bool { s.send(`{"id":99%s,"result":{}}`, m.ID); return m.Method != "x" },
		"answers with a list": func(s *speaker, m request) bool {
			if m.Method != "textDocument/diagnostic" {
				return usual(s, m)
			}
			s.send(`{"id":%s,"result":[]}`, m.ID)
			return true
		},
		"asks without end": func(s *speaker, _ request) bool {
			for {
				if _, err := fmt.Fprint(s, "Content-Length: 36\r\n\r\n", `{"id":1,"method":"workspace/applyE"}`); err != nil {
					return false
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &twin{behave: func(start int, s *speaker, m request) bool {
					if start == 1 {
						return wrong(s, m)
					}
					return usual(s, m)
				}}
				c := New(Python, w.start, nil)
				defer c.Close()
				if got := text(c, "x"); got != "" {
					t.Errorf("it finds %q", got)
				}
				if got := text(c, "at once again"); got != "" || w.starts.Load() != 1 {
					t.Errorf("it does not rest: %q, %d starts", got, w.starts.Load())
				}
				time.Sleep(2 * time.Second)
				if got := text(c, "y"); got != "3: y" {
					t.Errorf("the next server finds %q", got)
				}
			})
		})
	}
}

// TestGivenUp: a server that never works is not started for ever.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts int
		c := New(TypeScript, func(context.Context) (io.ReadWriteCloser, error) { starts++; return nil, errors.New("no sandbox") }, nil)
		defer c.Close()
		for range 100 {
			if got := text(c, "x"); got != "" {
				t.Errorf("it finds %q", got)
			}
			time.Sleep(time.Minute)
		}
		if starts != maxTries {
			t.Errorf("it was started %d times, want %d", starts, maxTries)
		}
	})
}

// TestUnavailable: a server that cannot be had now is tried for as long as it takes; on a machine that comes and goes, so is one that fails.
func TestUnavailable(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		opts *Options
	}{"nowhere": {fmt.Errorf("start: %w", ErrUnavailable), nil}, "fails": {errors.New("it failed"), &Options{Persistent: true}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, tries := &twin{behave: func(_ int, s *speaker, m request) bool { return usual(s, m) }}, 0
				c := New(Python, func(ctx context.Context) (io.ReadWriteCloser, error) {
					if _, limited := ctx.Deadline(); !limited {
						t.Error("the start has no time limit")
					}
					if tries++; tries <= 2*maxTries {
						return nil, test.err
					}
					return w.start(ctx)
				}, test.opts)
				defer c.Close()
				for range 2 * maxTries {
					if got := text(c, "x"); got != "" || c.Unavailable() != (test.opts == nil) {
						t.Errorf("it finds %q, unavailable: %v", got, c.Unavailable())
					}
					time.Sleep(time.Hour)
				}
				if got := text(c, "y"); got != "3: y" || c.Unavailable() {
					t.Errorf("it finds %q, unavailable: %v, after %d tries", got, c.Unavailable(), tries)
				}
			})
		})
	}
}

// TestLine: checks wait in a line that has an end, dropped ones are not made, and Close answers those that wait.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		stuck := make(chan struct{})
		w := &twin{behave: func(_ int, s *speaker, m request) bool {
			if m.Method == "textDocument/diagnostic" {
				asked = append(asked, s.text)
				if s.text == "stuck" {
					<-stuck
				}
			}
			return usual(s, m)
		}}
		c := New(Python, w.start, nil)
		text(c, "warm")
		first := c.Check("stuck")
		synctest.Wait()
		dropped := c.Check("dropped")
		dropped.Drop()
		var last *Check
		for range 2 * maxQueue {
			if check := c.Check("next"); check != nil {
				last = check
			}
		}
		close(stuck)
		if len(first.Warnings(t.Context())) != 1 || len(last.Warnings(t.Context())) != 1 {
			t.Error("a check in the line was not made")
		}
		if n := strings.Count(strings.Join(asked, " "), "next"); n != maxQueue-1 || strings.Contains(strings.Join(asked, " "), "dropped") {
			t.Errorf("made: %q", asked)
		}
		if c.Check(strings.Repeat("x", maxCode+1)) != nil {
			t.Error("a program of any length is checked")
		}
		c.Close()
		c.Close()
	})
}

// TestFind lays out packages as npm does.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	platform := "node_modules/@typescript/typescript-" + runtime.GOOS + "-" + arch + "/lib/tsc"
	for path, data := range map[string]string{
		"node_modules/pyright/package.json": `{"name": "pyright", "version": "1.2.3"}`, "node_modules/pyright/index.js": "#!node", "node_modules/pyright/langserver.index.js": "",
		"node_modules/typescript/package.json": `{"name": "typescript", "version": "7.1.0"}`, "node_modules/typescript/bin/tsc": "#!node", platform: "ELF",
		"old/typescript/package.json": `{"name": "typescript", "version": "5.9.3"}`, "old/typescript/bin/tsc": "#!node",
		"shim/pyright": "#!python", "node_modules/.bin/shim": "#!/bin/sh",
	} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(data), 0o755)); err != nil { //nolint:gosec // commands
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"pyright": "../pyright/index.js", "tsc": "../typescript/bin/tsc"} {
		if err := os.Symlink(to, filepath.Join(dir, "node_modules/.bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	bare := t.TempDir()
	if err := os.WriteFile(filepath.Join(bare, "package.json"), []byte(`{"name": "typescript", "version": "7.1.0"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	pyright, lib := filepath.Join(dir, "node_modules/pyright"), filepath.Join(dir, filepath.Dir(platform))
	t.Setenv("PATH", "relative:/nonexistent:"+filepath.Join(dir, "node_modules/.bin"))
	for _, test := range []struct {
		language   Language
		path, want string
	}{
		{Python, "", pyright}, {Python, "pyright", pyright}, {Python, pyright, pyright}, {Python, pyright + "/index.js", pyright},
		{Python, filepath.Join(dir, "node_modules/.bin/shim"), pyright},
		{Python, "shim-that-is-not-there", "was not found"}, {Python, filepath.Join(dir, "shim/pyright"), "does not belong to the npm package pyright"},
		{TypeScript, "", lib}, {TypeScript, filepath.Join(dir, "node_modules/typescript"), lib},
		{TypeScript, filepath.Join(dir, "old/typescript/bin/tsc"), "5.9.3 has no language server"},
		{TypeScript, bare, "lacks its package"},
	} {
		got, err := Find(test.language, test.path)
		if said := got.Folder + fmt.Sprint(err); !strings.Contains(said, test.want) || err == nil && got.Version == "" {
			t.Errorf("%s at %q: %s, want %s", test.language, test.path, said, test.want)
		}
	}
	t.Setenv("PATH", "/nonexistent")
	if _, err := Find(Python, ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("with nothing in PATH: %v", err)
	}
}
