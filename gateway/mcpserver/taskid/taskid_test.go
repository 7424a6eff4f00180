package taskid_test

import (
	"strings"
	"testing"

	"sallyport/gateway/mcpserver/taskid"
	"sallyport/internal/tool"
)

func TestSeal(t *testing.T) {
	t.Parallel()
	s, task := taskid.New([]byte("key")), taskid.Task{Tool: tool.ID{Upstream: "lab", Name: "work"}, Wire: "t-1 é\n"}
	id, ok := s.Seal(task, []byte("ann"))
	if !ok || strings.Contains(id, "t-1") {
		t.Fatalf("ID %q", id)
	}
	if got, ok := taskid.New([]byte("key")).Open(id, []byte("ann")); !ok || got != task {
		t.Errorf("with the same key: %+v, %v", got, ok)
	}
	for what, open := range map[string]func() (taskid.Task, bool){
		"another caller": func() (taskid.Task, bool) { return s.Open(id, []byte("ben")) },
		"another key":    func() (taskid.Task, bool) { return taskid.New([]byte("other")).Open(id, []byte("ann")) },
		"a random key":   func() (taskid.Task, bool) { return taskid.New(nil).Open(id, []byte("ann")) },
	} {
		if got, ok := open(); ok {
			t.Errorf("%s opens %+v", what, got)
		}
	}
	for _, wire := range []string{"", strings.Repeat("x", 513)} {
		if id, ok := s.Seal(taskid.Task{Tool: task.Tool, Wire: wire}, nil); ok {
			t.Errorf("%d bytes are sealed as %s", len(wire), id)
		}
	}
	if id, ok = s.Seal(taskid.Task{Tool: task.Tool, Wire: strings.Repeat("\x01", 512)}, nil); !ok {
		t.Error("the longest is not sealed")
	}
	if _, ok := s.Open(id, nil); !ok {
		t.Error("the longest cannot be opened")
	}
}

// FuzzOpen: no text opens but the IDs that were made.
func FuzzOpen(f *testing.F) {
	s, task := taskid.New([]byte("key")), taskid.Task{Tool: tool.ID{Upstream: "lab", Name: "work"}, Wire: "t"}
	id, _ := s.Seal(task, nil)
	f.Add(id)
	f.Add(id[1:])
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if got, ok := s.Open(text, nil); ok && got != task {
			t.Errorf("%q opens %+v", text, got)
		}
	})
}
