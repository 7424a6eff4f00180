package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/execution"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// FuzzOutput: whatever an upstream or a program wrote, a terminal gets nothing
// hidden, and JSON still says the same.
func FuzzOutput(f *testing.F) {
	f.Add("plain\n\ttext")
	f.Add("\x1b[2J\u009b31m\u202e\U000e0041\x7f\xff\r")
	f.Fuzz(func(t *testing.T, s string) {
		data, err := json.MarshalIndent(map[string]string{"value": s}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		escaped := cli.EscapeHidden(string(data))
		var want, got map[string]string
		if err := errors.Join(json.Unmarshal(data, &want), json.Unmarshal([]byte(escaped), &got)); err != nil {
			t.Fatalf("%q: %v", escaped, err)
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%q became %q", want, got)
		}
		for _, shown := range []string{escaped, cli.Clean(s)} {
			if i := strings.IndexFunc(shown, func(r rune) bool { return r != '\n' && r != '\t' && sanitize.Hidden(r) }); i >= 0 {
				t.Errorf("a terminal gets %q", shown[i:])
			}
		}
	})
}

func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("any"), 1},
		{cli.Status(7), 7},
		{errors.Join(cli.Status(7), errors.New("close: any")), 7},
		{fmt.Errorf("write: %w", syscall.EPIPE), 141},
		{errors.Join(syscall.EPIPE, cli.Status(1)), 141},
		{&cli.ConfigError{Err: errors.New("any")}, 2},
		{context.Canceled, 130},
		{&tool.Error{Kind: tool.Invalid}, 2},
		{&tool.Error{Kind: tool.NotFound}, 1},
		{&tool.Error{Kind: tool.Upstream}, 1},
		{&tool.Error{Kind: tool.Timeout}, 124},
		{&tool.Error{Kind: tool.Canceled}, 130},
		{&tool.Error{Kind: tool.Internal}, 125},
	} {
		if got := cli.ExitStatus(c.err); got != c.want {
			t.Errorf("exitStatus(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}

// TestEnds: what is printed at every end of a program; the scripts have the ends that are cheap to cause.
func TestEnds(t *testing.T) {
	limits := sandbox.DefaultLimits()
	for _, c := range []struct {
		outcome sandbox.Outcome
		want    int
		says    string
	}{
		{sandbox.Outcome{Status: sandbox.OK}, 0, ""},
		{sandbox.Outcome{Status: sandbox.Failed, Fault: &bridge.Fault{Type: "E", Message: "m\x1b[2J"}}, 1, "E: m"},
		{sandbox.Outcome{Status: sandbox.Exited, Exit: 3}, 3, ""},
		{sandbox.Outcome{Status: sandbox.TimedOut}, 124, "sallyport: stopped: it ran longer"},
		{sandbox.Outcome{Status: sandbox.OutOfMemory}, 125, "sallyport: stopped: it used more than 512 MiB"},
		{sandbox.Outcome{Status: sandbox.Flooded}, 125, "sallyport: stopped: it printed"},
		{sandbox.Outcome{Status: sandbox.Crashed}, 125, "sallyport: the sandbox died"},
		{sandbox.Outcome{Status: sandbox.Canceled}, 130, "sallyport: canceled"},
	} {
		e := execution.Result{Outcome: c.outcome, Limits: limits}
		e.Stdout.Text, e.Value = "printed", &bridge.Value{Kind: "json", Text: "1", Size: 1}
		if got := cli.ExitStatus(cli.ExecutionStatus(e)); got != c.want {
			t.Errorf("%s: exit status %d, want %d", c.outcome.Status, got, c.want)
		}
		says := failureText(e)
		if !strings.HasPrefix(says, c.says) || c.says == "" && says != "" || strings.Contains(says, "printed\n") {
			t.Errorf("%s: says %q, want %q", c.outcome.Status, says, c.says)
		}
	}
}

// TestGuestJSON: a guest that calls anything JSON does not break our own.
func TestGuestJSON(t *testing.T) {
	for text, kind := range map[string]string{`{"a":1}`: "json", `{"a":`: "text", `1} , {`: "text", "": "text"} {
		e := execution.Result{Outcome: sandbox.Outcome{Status: sandbox.OK, Value: &bridge.Value{Kind: "json", Text: text, Size: 100}}}
		out := newExecutionJSON(e)
		if out.ValueKind != kind {
			t.Errorf("%q is %s, want %s", text, out.ValueKind, kind)
		}
		if _, err := json.Marshal(out); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
