package gateway_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/internal/approval"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// kept is a gateway whose records outlive it.
type kept struct {
	*gateway.Gateway
	records *store.Store
	log     *records
}

func openKept(t *testing.T, cfg *config.Config, data string) *kept {
	t.Helper()
	in, err := store.Open(filepath.Join(data, "records"), nil)
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{records: in, log: &records{}}
	if k.Gateway, err = gateway.Open(cfg, &gateway.Options{DataDir: data, Records: in, Snapshots: testutil.Snapshots(), NoPool: true, Logger: slog.New(k.log)}); err != nil {
		t.Fatal(err)
	}
	k.Catalog.WaitConnected(t.Context())
	return k
}

func (k *kept) end(t *testing.T) {
	t.Helper()
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if err := k.records.Close(); err != nil {
		t.Error(err)
	}
}

// flip changes bytes of a bucket's records where a text is, and as many before as the record's key takes with whole.
func flip(t *testing.T, data, stream, text string, before int) {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(data, "records", "jetstream", "*", "*", "streams", stream, "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatal(blocks, err)
	}
	content, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for at := 0; ; found++ {
		next := bytes.Index(content[at:], []byte(text))
		if next < 0 {
			break
		}
		at += next
		for i := max(0, at-before); i < at+3; i++ {
			content[i] ^= 0x55
		}
		at += 3
	}
	if found == 0 {
		t.Fatalf("no %s in %s", text, stream)
	}
	if err := os.WriteFile(blocks[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedRecords: records of executions that were damaged are made again from journals and the audit log, also where their keys are lost;
// a damaged question to people is told as lost, lets nothing through, and is asked again.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	notesSite := newSite(t, notes)
	cfg := withRunsc(t, settings(map[string]*site{"notes": notesSite}))
	cfg.Policy = policy.Settings{On: true, Default: policy.Ask}
	cfg.Approval.Wait = 50 * time.Millisecond
	cfg.Audit = config.Default().Audit
	data, ada := t.TempDir(), tool.WithPrincipal(t.Context(), "ada")
	k := openKept(t, cfg, data)
	run := func(ctx context.Context, code, resume string, want sandbox.Status) execution.Result {
		t.Helper()
		e, err := k.Executor.Execute(ctx, execution.Program{Code: code, Resume: resume})
		if err != nil || e.Status != want {
			t.Fatalf("%v, %s", err, e.Text())
		}
		return e
	}
	const note = "from servers.notes import create_note\ncreate_note(title='a')"
	fine, fails := run(ada, "print(1)", "", sandbox.OK), run(ada, "1/0", "", sandbox.Failed)
	waits, allowed := run(ada, note, "", execution.Held), run(ada, note, "", execution.Held)
	keyless := run(ada, "print(2)", "", sandbox.OK)
	operator := tool.WithOperator(t.Context(), "op")
	if _, err := k.Approver.Answer(operator, allowed.Approvals[0].ID, approvals.Answer{Allow: true}); err != nil {
		t.Fatal(err)
	}
	k.end(t)
	for _, e := range []execution.Result{fine, fails} {
		flip(t, data, "bucket_executions", `{"id":"`+e.ID, 0)
	}
	flip(t, data, "bucket_executions", `{"id":"`+keyless.ID, 40)
	flip(t, data, "bucket_approvals", `{"id":"`+waits.Approvals[0].ID, 0)
	flip(t, data, "bucket_approvals", `{"id":"`+allowed.Approvals[0].ID, 40)

	missingBefore(t, data, []string{fine.ID, fails.ID, keyless.ID}, []string{waits.Approvals[0].ID, allowed.Approvals[0].ID})
	k = openKept(t, cfg, data)
	defer func() { k.end(t) }()
	wantRebuilt(ada, t, k, fine.ID, fails.ID, keyless.ID, waits.ID, allowed.ID)
	if r, err := k.History.Record(ada, fails.ID); err != nil || r.Code != "1/0" || r.Status != sandbox.Failed {
		t.Errorf("from its journal: %+v, %v", r, err)
	}
	if r, err := k.History.Record(ada, keyless.ID); err != nil || r.Status != sandbox.OK || r.Principal != "ada" || r.Started.IsZero() {
		t.Errorf("from the audit log: %+v, %v", r, err)
	}
	wantLost(t, k, waits, allowed)
	for _, e := range []execution.Result{waits, allowed} {
		if again := run(ada, "", e.ID, execution.Held); len(again.Approvals) != 1 || again.Approvals[0].State != approval.Waiting {
			t.Errorf("resumed: %+v", again.Approvals)
		}
	}
	if hits := notesSite.hits.Load(); hits != 0 {
		t.Errorf("%d calls that nobody had allowed", hits)
	}
}

// missingBefore looks at a copy as doctor does.
func missingBefore(t *testing.T, data string, executions, approvals []string) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "records")
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(data, "records"))); err != nil {
		t.Fatal(err)
	}
	in, err := store.Open(copied, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	missing, err := history.FindMissing(t.Context(), data, 30*24*time.Hour, in)
	if err != nil {
		t.Fatal(err)
	}
	var foundExecutions, foundApprovals []string
	for _, e := range missing.Executions {
		foundExecutions = append(foundExecutions, e.Execution)
	}
	for _, e := range missing.Approvals {
		foundApprovals = append(foundApprovals, e.Approval)
	}
	if !slices.Equal(foundExecutions, executions) || !slices.Equal(foundApprovals, approvals) {
		t.Errorf("missing %v and %v, want %v and %v", foundExecutions, foundApprovals, executions, approvals)
	}
}

func wantRebuilt(ctx context.Context, t *testing.T, k *kept, ids ...string) {
	t.Helper()
	slices.Sort(ids)
	var listed []string
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		page, err := k.History.Executions(ctx, history.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		listed = nil
		for _, e := range page.Executions {
			listed = append(listed, e.ID)
		}
		if slices.Sort(listed); slices.Equal(listed, ids) {
			return
		}
	}
	t.Fatalf("listed %v, want %v", listed, ids)
}

func wantLost(t *testing.T, k *kept, held ...execution.Result) {
	t.Helper()
	all, err := k.Approver.Approvals(tool.WithOperator(t.Context(), "op"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range held {
		at := slices.IndexFunc(all, func(a approvals.Approval) bool { return a.ID == e.Approvals[0].ID })
		if at < 0 || all[at].State != approval.Lost || all[at].Execution != e.ID || all[at].Tool != "notes.create_note" {
			t.Errorf("%s: %+v", e.ID, all)
			continue
		}
		if _, err := k.Approver.Answer(tool.WithOperator(t.Context(), "op"), all[at].ID, approvals.Answer{Allow: true}); err == nil {
			t.Error("what was lost was answered")
		}
	}
	if said := k.log.find("an approval is lost: its record was damaged"); len(said) != len(held) {
		t.Errorf("log: %v", said)
	}
}
