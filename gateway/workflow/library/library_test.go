package library_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/workflow/library"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// describe is what the definitions are described as, by name.
func describe(l *library.Library) string {
	var texts []string
	for _, d := range l.Definitions() {
		texts = append(texts, d.Name+"="+d.Description)
	}
	return strings.Join(texts, " ")
}

const step = "\nsteps: [{id: a, wait: 1s}]\n"

// TestFollow: what changes is read, what is wrong leaves what was there in force and is told once, and what is removed goes.
func TestFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "one.yaml", "description: first"+step)
	write(t, dir, "code.yaml", "steps: [{id: a, file: a.py}]\n")
	write(t, dir, "a.py", "result = 1\n")
	write(t, dir, "one_test.yaml", "no definition")
	var log bytes.Buffer
	l := library.Open(dir, slog.New(slog.NewTextHandler(&log, nil)))
	if got := describe(l); got != "code= one=first" || len(l.Faults()) > 0 {
		t.Fatalf("at first: %s %v", got, l.Faults())
	}
	before := l.Definitions()[0]
	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan struct{}, 9)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Follow(ctx, func() { changed <- struct{}{} })
	}()
	next := func(what string) {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatalf("%s is not seen", what)
		}
	}
	write(t, dir, "one.yaml", "description: [wrong]"+step)
	write(t, dir, "two.yaml", "description: second"+step)
	write(t, dir, "a.py", "result = 12\n")
	next("a change")
	if got := describe(l); got != "code= one=first two=second" || len(l.Faults()) != 1 || l.Definitions()[0].Digest == before.Digest {
		t.Errorf("then: %s %v", got, l.Faults())
	}
	if err := os.Remove(filepath.Join(dir, "one.yaml")); err != nil {
		t.Fatal(err)
	}
	next("a removal")
	cancel()
	<-ended
	if got := describe(l); got != "code= two=second" || len(l.Faults()) > 0 {
		t.Errorf("in the end: %s %v", got, l.Faults())
	}
	if text := log.String(); strings.Count(text, "cannot read workflow") != 1 || strings.Contains(text, "wrong") || !strings.Contains(text, "one.yaml:1:14") {
		t.Errorf("the log: %s", text)
	}
}

// TestNoFolder: a folder that is not there has no workflows, and that is no fault.
func TestNoFolder(t *testing.T) {
	t.Parallel()
	if l := library.Open(filepath.Join(t.TempDir(), "none"), nil); len(l.Definitions()) > 0 || len(l.Faults()) > 0 {
		t.Errorf("%v %v", l.Definitions(), l.Faults())
	}
}

// TestFollowMeanwhile: what changes while a change is being told is seen, too.
func TestFollowMeanwhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "one.yaml", "description: first"+step)
	l := library.Open(dir, nil)
	write(t, dir, "two.yaml", "description: second"+step)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	told := 0
	l.Follow(ctx, func() {
		if told++; told == 1 {
			if err := os.Remove(filepath.Join(dir, "one.yaml")); err != nil {
				t.Error(err)
			}
			return
		}
		cancel()
	})
	if got := describe(l); told != 2 || got != "two=second" {
		t.Errorf("told %d times, in the end: %s", told, got)
	}
}
