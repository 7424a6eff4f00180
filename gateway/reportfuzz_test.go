package gateway_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"sallyport/gateway/execution"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// FuzzExecutionText: whatever a program prints, returns, raises, emits or calls itself, what is told of it has
// nothing hidden in it, no terminal escape, and no more than it may have.
func FuzzExecutionText(f *testing.F) {
	f.Add("plain", "ValueError", "1", 1)
	f.Add("\x1b[2J\u009b31m\u202e\U000e0041\x7f\xff\r\n\x00", "\x1b]0;title\x07", `"\u001b[31m\u202e"`, -1)
	f.Add(strings.Repeat("\x1b\x1b[", 100), "\u2028\u2029\u0085\v\f", `"\ud800"`, 1<<31)
	f.Add("\x1b\x1b[31m[31m", "\xc2\x1b[m\x9b31m", "\x1b[\x1b[0m31m", 0)
	statuses := []sandbox.Status{sandbox.OK, sandbox.Failed, sandbox.Exited, sandbox.TimedOut, sandbox.OutOfMemory, sandbox.Flooded, sandbox.OutOfCPU, sandbox.Canceled, sandbox.Crashed, "odd"}
	f.Fuzz(func(t *testing.T, text, name, value string, n int) {
		fault := &bridge.Fault{Type: name, Message: text, Hint: value, Lines: []bridge.Line{{Line: n, Function: name, Source: text}}}
		for _, status := range statuses {
			for _, kind := range []string{"json", "text", name} {
				e := execution.Result{Outcome: sandbox.Outcome{
					Status: status, Stdout: sandbox.Output{Text: text}, Stderr: sandbox.Output{Text: value, Cut: int64(n)}, Value: &bridge.Value{Kind: kind, Text: value, Size: int64(n)}, Fault: fault, Exit: n,
					Emitted: []tool.Content{{Type: "text", Text: text, Name: name, MIME: value}, {Type: "resource", Name: text, URI: value, Data: []byte(name), MIME: name}}, Notes: []string{text, name},
				}, Limits: sandbox.DefaultLimits()}
				shown := e.Text()
				if i := strings.IndexFunc(shown, func(r rune) bool { return r != '\n' && r != '\t' && sanitize.Hidden(r) }); i >= 0 {
					t.Fatalf("%s: what is told has %q", status, shown[i:min(len(shown), i+20)])
				}
				if !utf8.ValidString(shown) || len(shown) > 30_000+8*(len(text)+len(name)+len(value)) {
					t.Fatalf("%s: %d bytes of text, valid: %t", status, len(shown), utf8.ValidString(shown))
				}
			}
		}
	})
}
