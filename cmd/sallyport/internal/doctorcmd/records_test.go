package doctorcmd

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// TestDoctorRecords: doctor names damaged records before and after a gateway has mended them, and those that the audit log knows and
// the store has not.
func TestDoctorRecords(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	a := &app{App: &cli.App{Env: os.LookupEnv, Stderr: io.Discard, DataPath: data}}
	id := failedExecution(t, data)
	want := func(verdict, text string) {
		t.Helper()
		found := a.checkRecords(t.Context(), &config.Config{Records: config.Records{Keep: 30 * 24 * time.Hour}})
		for _, f := range found {
			if line := f.String(); strings.HasPrefix(line, verdict) && strings.Contains(line, text) {
				return
			}
		}
		t.Errorf("no %s with %q: %v", verdict, text, found)
	}
	want("ok", "records: all records of the audit log are present")
	flipRecord(t, data, "bucket_executions", `{"id":"`+id)
	want("FAIL", "damaged records: 1 record: bucket_executions")
	withRecords(t, data, func(g *gateway.Gateway) {
		for ctx := tool.WithOperator(t.Context(), cli.OperatorName); ; time.Sleep(20 * time.Millisecond) {
			if page, err := g.History.Executions(ctx, history.Filter{}); err != nil || page.Total > 0 {
				return
			}
		}
	})
	want("warn", "damaged records: 1 record: bucket_executions")
	want("ok", "records: all records of the audit log are present")
	addUnmatchedLog(t, data)
	l, err := audit.Open(audit.Dir(data), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []audit.Event{
		{Kind: audit.ExecutionEnd, Execution: "e-gone", Outcome: "ok", Kept: true}, {Kind: audit.ExecutionEnd, Execution: "e-elsewhere", Outcome: "ok"},
		{Kind: audit.ApprovalAsked, Approval: "a-gone", Execution: "e-gone", Tool: "crm.inc", Outcome: "waiting", Kept: true},
	} {
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	want("warn", "missing: approval a-gone (crm.inc, of execution e-gone), execution e-gone, the list entry of run r-lonely\n")
}

// failedExecution runs a program.
func failedExecution(t *testing.T, data string) (id string) {
	t.Helper()
	withRecords(t, data, func(g *gateway.Gateway) {
		e, err := g.Executor.Execute(t.Context(), execution.Program{Code: "let = ;", Language: "ts"})
		if err != nil {
			t.Fatal(err)
		}
		id = e.ID
	})
	return id
}

// withRecords opens a gateway with records for the time that use takes.
func withRecords(t *testing.T, data string, use func(*gateway.Gateway)) {
	t.Helper()
	records, err := store.Open(filepath.Join(data, cli.RecordsFolder), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = records.Close() }()
	cfg := config.Default()
	g, err := gateway.Open(&cfg, &gateway.Options{DataDir: data, Records: records, NoPool: true})
	if err != nil {
		t.Fatal(err)
	}
	use(g)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
}

// addUnmatchedLog makes a run whose summary is gone.
func addUnmatchedLog(t *testing.T, data string) {
	t.Helper()
	records, err := store.Open(filepath.Join(data, cli.RecordsFolder), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = records.Close() }()
	runs, err := runlog.Open(records)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runs.Create(t.Context(), runlog.Run{ID: "r-lonely"}, runlog.Event{Kind: runlog.Created, Start: &runlog.Started{ID: "r-lonely"}}); err != nil {
		t.Fatal(err)
	}
	index, err := records.Bucket("run_index", store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := index.Remove(t.Context(), store.Key{"r-lonely"}); err != nil {
		t.Fatal(err)
	}
}

func flipRecord(t *testing.T, data, stream, text string) {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(data, cli.RecordsFolder, "jetstream", "*", "*", "streams", stream, "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatal(blocks, err)
	}
	content, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(content, []byte(text))
	if at < 0 {
		t.Fatal("no " + text)
	}
	for i := range 3 {
		content[at+i] ^= 0x55
	}
	if err := os.WriteFile(blocks[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
}
