//go:build linux

package isolation_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// programs are tools of programs that every machine of the tests has.
const programs = `
tools:
  show:
    description: Shows a file.
    run: [cat, "{file}"]
    parameters: {file: {type: string}}
    read_only: true
  stat:
    run: [python3, -c, "import json, os, sys; print(json.dumps({'size': os.stat(sys.argv[1]).st_size}))", "{file}"]
    parameters: {file: {type: string}}
    output: json
    result: {type: object, properties: {size: {type: integer}}, required: [size]}
  count:
    run: [seq, "{last}"]
    parameters: {last: {type: integer, maximum: 100000000}}
    output: lines
    result: {type: integer}
  find:
    run: [grep, -c, "{word}"]
    parameters: {word: {type: string}, text: {type: string, required: false, default: "no\n"}}
    stdin: "{text}"
    ok_exit: [0, 1]
  write:
    run: [sh, -c, 'echo changed > "$1"', sh, "{file}"]
    parameters: {file: {type: string}}
  connect:
    run: [python3, -c, "import socket; socket.create_connection(('1.1.1.1', 443), 3)"]
  wait:
    run: [sh, -c, 'sleep 1000 & sleep 1000 & echo started >&2; wait']
    timeout: 10s
  broken:
    run: [echo, "{not json"]
    output: json
  host:
    run: [python3, -c, "import os; print(os.path.exists('/etc/shadow'), sorted(os.environ), os.getcwd(), os.getpid())"]
`

// callTool calls a tool and returns its result; the text of one that failed begins with "error: ".
func callTool(t testing.TB, s *upstream.Session, name, args string) (text, structured string) {
	t.Helper()
	got, err := s.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "it", Name: name}, Args: []byte(args)})
	if err != nil {
		return "refused: " + err.Error(), ""
	}
	if text = got.Content[0].Text; got.IsError {
		text = "error: " + text
	}
	return text, string(got.Structured)
}

// TestCommandTools runs programs as tools.
func TestCommandTools(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a b.txt")
	if err := os.WriteFile(file, []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, newLauncher(t), parse(t, programs+"isolate: {mounts: [{path: "+dir+"}]}\nenv: {GIVEN: x}\nmax_message: 64KiB\n"))
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, one := range s.Tools() {
		if read := one.ID.Name == "show"; *one.Annotations.ReadOnly != read || one.Annotations.Destructive != nil && !*one.Annotations.Destructive {
			t.Errorf("annotations of %s: %+v", one.ID.Name, one.Annotations)
		}
	}
	for _, test := range []struct{ name, args, text, structured string }{
		{"show", `{"file": "` + file + `"}`, "hello", ""},
		{"show", `{"file": "--help"}`, `refused: it.show: file must not begin with "-"`, ""},
		{"show", `{"file": "/etc/shadow"}`, "error: cat exited with status 1\nstderr: /usr/bin/cat: /etc/shadow: No such file or directory", ""},
		{"show", `{"file": 1}`, "refused: ", ""},
		{"stat", `{"file": "` + file + `"}`, `{"size": 5}`, `{"size":5}`},
		{"count", `{"last": 3}`, "[1,2,3]", `{"result":[1,2,3]}`},
		{"count", `{"last": 100000000}`, "error: seq was stopped: it printed more than max_message, 64KiB; ask for less\nstdout: 1\n2", ""},
		{"find", `{"word": "a", "text": "a\nb\na\n"}`, "2\n", ""},
		{"find", `{"word": "a"}`, "0\n", ""},
		{"find", `{"word": "["}`, "error: grep exited with status 2\nstderr: /usr/bin/grep: ", ""},
		{"write", `{"file": "` + file + `"}`, "error: sh exited with status 2\nstderr: sh: 1: cannot create " + file + ": Read-only file system", ""},
		{"connect", `{}`, "error: python3 exited with status 1\nstderr: Traceback", ""},
		{"wait", `{}`, "error: sh was stopped: it ran longer than its timeout, 10s\nstderr: started", ""},
		{"broken", `{}`, "error: echo did not print one JSON value: invalid character 'n'", ""},
		{"host", `{}`, "False ['GIVEN', 'HOME', 'LANG', 'MALLOC_ARENA_MAX', 'PATH', 'TMPDIR'] /home/server 1\n", ""},
	} {
		text, structured := callTool(t, s, test.name, test.args)
		if !strings.HasPrefix(text, test.text) || structured != test.structured {
			t.Errorf("%s %s:\n%.600s\n%.200s", test.name, test.args, text, structured)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "hello" {
		t.Errorf("the mounted file has %q, %v", data, err)
	}
}

// TestCommandToolCanceled checks that the end of a call ends its program.
func TestCommandToolCanceled(t *testing.T) {
	dir := t.TempDir()
	s := open(t, newLauncher(t), parse(t, "tools: {wait: {run: [sh, -c, 'touch \"$1\"/runs; sleep 1000', sh, "+dir+"]}}\nisolate: {mounts: [{path: "+dir+", mode: rw}]}"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := s.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "it", Name: "wait"}})
		ended <- err
	}()
	testutil.Eventually(t, "the program runs", time.Minute, func() bool {
		_, err := os.Stat(filepath.Join(dir, "runs"))
		return err == nil
	})
	cancel()
	select {
	case err := <-ended: // newLauncher checks that nothing of its sandbox is left
		if err == nil {
			t.Error("a canceled call has a result")
		}
	case <-time.After(time.Minute):
		t.Error("the call does not end")
	}
}

// TestCommandToolMissing checks that a program that is not in the sandbox is named before a call.
func TestCommandToolMissing(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "serve.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	launcher := newLauncher(t)
	for settings, want := range map[string]string{
		"tools: {ok: {run: [ls]}, gone: {run: [no-such-program]}}": `tool gone: start "no-such-program": executable file not found`,
		"tools: {script: {run: [" + script + "]}}":                 "tool script: its command " + script + " is not in the sandbox; add to isolate: mounts: [{path: " + dir + "}]",
	} {
		if err := open(t, launcher, parse(t, settings)).Connect(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func BenchmarkCommandTool(b *testing.B) {
	s := open(b, newLauncher(b), parse(b, "tools: {yes: {run: [echo, yes]}}"))
	for b.Loop() {
		if text, _ := callTool(b, s, "yes", "{}"); text != "yes\n" {
			b.Fatal(text)
		}
	}
}

// TestCommandToolsPage runs the example of the page.
func TestCommandToolsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), "docs", "how-to", "command-tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```yaml\nupstreams:\n  notes:\n")
	example, _, _ = strings.Cut(example, "```")
	dir := t.TempDir()
	example = strings.ReplaceAll(strings.ReplaceAll(example, "\n    ", "\n"), "/srv/notes", dir)
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\nTODO: two\n-three\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, newLauncher(t), parse(t, strings.TrimPrefix(example, "    ")))
	for _, test := range []struct{ name, args, want string }{
		{"find", `{"pattern": "todo", "ignore_case": true}`, dir + "/a.txt:2:TODO: two\n"},
		{"find", `{"pattern": "-three"}`, dir + "/a.txt:3:-three\n"},
		{"find", `{"pattern": "four"}`, ""},
		{"stat", `{"file": "a.txt"}`, `{"size": 21, "changed": `},
		{"stat", `{"file": "../a.txt"}`, "refused: it.stat: wrong arguments: file"},
	} {
		if text, _ := callTool(t, s, test.name, test.args); !strings.HasPrefix(text, test.want) || test.want == "" && text != "" {
			t.Errorf("%s %s: %s", test.name, test.args, text)
		}
	}
}
