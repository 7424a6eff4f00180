package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/auditor"
	"sallyport/internal/audit"
	"sallyport/internal/config"
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
}
