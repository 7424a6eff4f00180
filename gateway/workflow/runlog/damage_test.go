package runlog_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/store"
)

// TestDamage: the summary of a run that is damaged is made again from its log, and a run whose log is damaged is not gone on with.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, end := inDir(t, dir)
	for _, id := range []string{"r-1", "r-2"} {
		w, err := l.Create(t.Context(), runlog.Run{ID: id, Workflow: "w", Status: runlog.Running},
			runlog.Event{Kind: runlog.Created, Time: time.Now(), Start: &runlog.Started{ID: id, Workflow: "w", Principal: "ada"}})
		if err != nil {
			t.Fatal(err)
		}
		add(t, w, event(runlog.Began, "one"))
		add(t, w, runlog.Event{Kind: runlog.Ended, Path: "one", Outcome: "damage-" + id}, runlog.Event{Kind: runlog.Over, Status: runlog.Failed})
	}
	end()
	spoil(t, dir, "bucket_run_index", `{"id":"r-1"`)
	spoil(t, dir, "log_runs", "damage-r-2")
	l, end = inDir(t, dir)
	defer end()
	mended, err := l.RestoreSummaries(t.Context())
	if err != nil || len(mended) != 1 || mended[0].ID != "r-1" {
		t.Fatalf("%+v, %v", mended, err)
	}
	run, err := l.Summary(t.Context(), "r-1")
	if err != nil || run.Principal != "ada" || run.Status != runlog.Failed || run.Steps != 1 {
		t.Errorf("%+v, %v", run, err)
	}
	nothing := func(runlog.Event) error { return nil }
	if _, err := l.OpenWriter(t.Context(), "r-1", nothing); err != nil {
		t.Error(err)
	}
	if _, err := l.OpenWriter(t.Context(), "r-2", nothing); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a run whose log is damaged: %v", err)
	}
	if _, err := l.Prune(t.Context()); err != nil || len(paths(t, l, "r-2", 0)) == 0 {
		t.Errorf("the rest of its log is gone, %v", err)
	}
}

func inDir(t *testing.T, dir string) (l *runlog.Logs, end func()) {
	t.Helper()
	s, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return logs(t, s), func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// spoil changes three bytes of a stream where a text is.
func spoil(t *testing.T, dir, stream, text string) {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "*", "streams", stream, "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatal(blocks, err)
	}
	data, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(data, []byte(text))
	if at < 0 {
		t.Fatalf("no %s", text)
	}
	for i := range 3 {
		data[at+i] ^= 0x55
	}
	if err := os.WriteFile(blocks[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
}
