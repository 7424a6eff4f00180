package typecheck

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// allocatedBytes is how much memory f asks for, in bytes, whether it is given back or not.
func allocatedBytes(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestManyFindings: what a server finds costs about what it sends, however small the pieces are, and looking at it
// takes time in proportion: a program of one line with 100,000 mistakes makes an honest server say as much.
func TestManyFindings(t *testing.T) {
	one := `{"range":{"start":{"line":1},"end":{"line":1}},"severity":1,"code":"reportCallIssue","message":"No parameter named \"x\""}`
	for name, items := range map[string]string{
		"small": strings.Repeat("{},", maxMessage/4) + "{}",
		"alike": strings.Repeat(one+",", maxMessage/len(one)-20) + one,
		"long":  strings.TrimSuffix(strings.Repeat(strings.Replace(one, "named", "named "+strings.Repeat("y", 100_000), 1)+",", maxMessage/110_000), ","),
	} {
		t.Run(name, func(t *testing.T) {
			data := []byte(`{"id":1,"result":{"items":[` + items + `]}}`)
			s := &server{process: sink{}, answers: make(chan message, 1), ended: make(chan struct{})}
			var list []Warning
			used := allocatedBytes(func() {
				if err := s.handle(data); err != nil {
					t.Fatal(err)
				}
				found, err := findings((<-s.answers).Result)
				if err != nil {
					t.Fatal(err)
				}
				list = dialects()[Python].warnings(found)
			})
			if used > 4*maxMessage {
				t.Errorf("%d MiB for %d", used>>20, len(data)>>20)
			}
			if name == "alike" && len(list) != 1 {
				t.Errorf("it finds %v", list)
			}
		})
	}
}

// TestManyQuestions: what a server asks for costs no more than what it sends.
func TestManyQuestions(t *testing.T) {
	params := []byte(`{"items":[` + strings.Repeat("0,", maxMessage/2-100) + `0]}`)
	if used := allocatedBytes(func() { reply("workspace/configuration", params) }); used > 2*maxMessage {
		t.Errorf("%d MiB for %d", used>>20, len(params)>>20)
	}
}

// TestTalker: a server that never stops talking does not keep a processor busy for as long as it lives.
func TestTalker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &twin{behave: func(start int, s *speaker, m request) bool {
			if start > 1 || m.Method != "textDocument/didClose" {
				return usual(s, m)
			}
			frame := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", 1<<20, `{"method":"x"`+strings.Repeat(" ", 1<<20-14)+"}")
			for { // until nobody listens
				if _, err := io.WriteString(s, frame); err != nil {
					return false
				}
			}
		}}
		c := New(Python, w.start, nil)
		defer c.Close()
		text(c, "x")
		synctest.Wait() // comes back only if it is stopped
		if c.Check("y").Warnings(context.Background()) != nil || w.starts.Load() != 1 {
			t.Error("the server still lives")
		}
	})
}

// TestFindingsOfAnswers: where the list stands in an answer, and whether there is one, is the server's to say.
func TestFindingsOfAnswers(t *testing.T) {
	for report, want := range map[string]int{
		`null`: 0, `{}`: 0, `{"items":null}`: 0, `{"items":[]}`: 0, `{"kind":"full","more":{"items":[1]},"items":[{},{}]}`: 2, `{"items":[{}],"kind":"full"}`: 1,
		`[]`: -1, `7`: -1, `{"items":7}`: -1, `{"items":{}}`: -1, `{"items":[7]}`: -1,
	} {
		found, err := findings([]byte(report))
		if len(found) != max(want, 0) || (err != nil) != (want < 0) {
			t.Errorf("%s: %d findings, %v; want %d", report, len(found), err, want)
		}
	}
}
