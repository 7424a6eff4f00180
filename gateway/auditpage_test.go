package gateway_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/auditor"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// TestAuditLog: an operator pages from the end, with filters; nobody else sees anything, and what was changed is told.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	cfg, data := &config.Config{Audit: config.Default().Audit}, t.TempDir()
	g := open(t, cfg, &gateway.Options{DataDir: data})
	ctx := tool.WithPrincipal(t.Context(), "token:ann")
	for i := range 9 {
		kind := audit.Call
		if i%3 == 0 {
			kind = audit.LoginRefused
		}
		if err := g.Auditor.Audit(ctx, audit.Event{Kind: kind, Tool: fmt.Sprintf("calc.t%d", i), Decision: "allow"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := g.Auditor.AuditLog(ctx, auditor.Filter{})
	wantError(t, err, tool.Denied, "operators only")

	operator := tool.WithOperator(ctx, "ops")
	var tools []string
	filter := auditor.Filter{Kind: "call", Tool: "calc.*", Principal: "token:ann", Decision: "allow", Limit: 4}
	for filter.Before = 0; ; {
		page, err := g.Auditor.AuditLog(operator, filter)
		if err != nil || !page.Whole() || page.Head.Seq != 10 {
			t.Fatalf("%+v %v", page, err)
		}
		for _, e := range page.Events {
			tools = append(tools, strings.TrimPrefix(e.Tool, "calc."))
		}
		if filter.Before = page.Next; page.Next == 0 {
			break
		}
	}
	if want := []string{"t8", "t7", "t5", "t4", "t2", "t1"}; !slices.Equal(tools, want) {
		t.Errorf("%v, want %v", tools, want)
	}
	if page, err := g.Auditor.AuditLog(operator, auditor.Filter{Since: time.Now().Add(time.Hour)}); err != nil || len(page.Events) != 0 || page.Looked != 0 {
		t.Errorf("%+v %v", page, err)
	}
	_, err = g.Auditor.AuditLog(operator, auditor.Filter{Kind: "calls"})
	wantError(t, err, tool.Invalid, "unknown kind")
	_, err = g.Auditor.AuditLog(operator, auditor.Filter{Decision: "allowed"})
	wantError(t, err, tool.Invalid, "unknown decision")

	if r, err := g.Auditor.VerifyAudit(operator); err != nil || !r.OK() || r.Count != 10 || r.First != 1 || r.Last != 10 {
		t.Errorf("%+v %v", r, err)
	}
	_, err = g.Auditor.VerifyAudit(ctx)
	wantError(t, err, tool.Denied, "operators only")
	files, _ := filepath.Glob(filepath.Join(audit.Dir(data), "records-*"))
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], []byte(strings.Replace(string(text), "calc.t4", "calc.t5", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if page, err := g.Auditor.AuditLog(operator, auditor.Filter{}); err != nil || page.Damaged != 1 || page.Unchained != 1 {
		t.Errorf("%+v %v", page, err)
	}
	if r, err := g.Auditor.VerifyAudit(operator); err != nil || len(r.Problems) == 0 || r.Problems[0].Seq != 6 || r.Count != 10 {
		t.Errorf("%+v %v", r, err)
	}
}

// TestVerifyAuditCopy: the log is compared with its copy in the store, and a gateway without a log says so.
func TestVerifyAuditCopy(t *testing.T) {
	t.Parallel()
	records, err := store.Open(filepath.Join(t.TempDir(), "records"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = records.Close() })
	g := open(t, &config.Config{Audit: config.Default().Audit}, &gateway.Options{DataDir: t.TempDir(), Records: records})
	operator := tool.WithOperator(t.Context(), "ops")
	for range 3 {
		if err := g.Auditor.Audit(operator, audit.Event{Kind: audit.Call, Tool: "calc.add"}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { g.Auditor.MaintainAudit(ctx) })
	defer work.Wait()
	defer cancel()
	testutil.Eventually(t, "the records are copied", time.Minute, func() bool {
		r, err := g.Auditor.VerifyAudit(operator)
		return err == nil && r.OK() && r.Mirrored >= 4
	})
	none := open(t, &config.Config{Audit: config.Audit{Off: true}}, &gateway.Options{DataDir: t.TempDir()})
	_, err = none.Auditor.VerifyAudit(operator)
	wantError(t, err, tool.NotFound, "no audit log")
}
