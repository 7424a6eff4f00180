package doctorcmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/journal"
)

// TestDoctorDamage checks that doctor notices a changed audit log and damaged journals.
func TestDoctorDamage(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	a := &app{App: &cli.App{Env: os.LookupEnv, Stderr: io.Discard, DataPath: data}}
	cfg := config.Default()
	l, err := audit.Open(audit.Dir(data), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := l.Append(audit.Event{Kind: audit.ExecutionEnd, Execution: fmt.Sprint("e-", i), Outcome: "ok"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if found := a.checkAudit(&cfg); !found[0].OK {
		t.Errorf("an intact log: %s", found[0])
	}
	files, _ := filepath.Glob(filepath.Join(audit.Dir(data), "*"))
	for _, file := range files {
		edit(t, file, func(b []byte) []byte { return bytes.Replace(b, []byte(`"e-0"`), []byte(`"e-9"`), 1) })
	}
	if got := a.checkAudit(&cfg)[0].String(); !strings.HasPrefix(got, "FAIL  audit: ") || !strings.Contains(got, "first record ") || !strings.Contains(got, "sallyport log verify") {
		t.Errorf("a changed log: %s", got)
	}
	if found := a.checkJournals(); found != nil {
		t.Errorf("no journals: %v", found)
	}
	owner := filepath.Join(data, "executions", "owner")
	for id, damage := range map[string]func([]byte) []byte{
		"e-whole": func(b []byte) []byte { return b }, "e-cut": func(b []byte) []byte { return append(b, "half"...) }, "e-none": func([]byte) []byte { return []byte("nonsense") },
	} {
		w, err := journal.Create(owner, journal.Header{ID: id}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		path := journal.Path(owner, id)
		edit(t, path, damage)
		if old := time.Now().Add(-time.Hour); os.Chtimes(path, old, old) != nil {
			t.Fatal("set the time of a journal")
		}
	}
	found := a.checkJournals()
	if len(found) != 1 || !strings.Contains(found[0].String(), "warn  journals: 2 executions with a damaged journal: ") ||
		!strings.Contains(found[0].Detail, "e-none (it cannot be read)") || !strings.Contains(found[0].Detail, "bytes can be read") {
		t.Errorf("damaged journals: %v", found)
	}
}

func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		return // a folder
	}
	if err := os.WriteFile(path, change(data), 0o600); err != nil {
		t.Fatal(err)
	}
}
