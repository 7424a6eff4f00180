package audit_test

import (
	"strings"
	"testing"

	"sallyport/internal/audit"
)

// BenchmarkAppend is one record of a call; the bar is 15 us.
func BenchmarkAppend(b *testing.B) {
	l := open(b, b.TempDir(), nil)
	e := audit.Event{Kind: audit.Call, Principal: "token:ci", Session: "0123456789ab", Client: "claude-code 2.1", Execution: "e-abcdefghijkl", Tool: "github.create_issue",
		Definition: strings.Repeat("0", 64), Arguments: strings.Repeat("1", 32), Decision: "allow", Rule: "default"}
	for b.Loop() {
		if err := l.Append(e); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppendShared is the same where another process's log appends by turns.
func BenchmarkAppendShared(b *testing.B) {
	dir := b.TempDir()
	logs := []*audit.Log{open(b, dir, nil), open(b, dir, nil)}
	i := 0
	for b.Loop() {
		i++
		if err := logs[i%2].Append(call("a.one")); err != nil {
			b.Fatal(err)
		}
	}
}
