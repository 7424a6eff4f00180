package flowtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/workflow/flowtest"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
)

// loadShipped are the definitions of the project and their tests.
func loadShipped(t *testing.T) ([]*spec.Definition, []*flowtest.File) {
	t.Helper()
	dir := filepath.Join(testutil.ModuleRoot(t), "workflows")
	definitions, faults := spec.LoadDir(dir)
	files, more := flowtest.LoadDir(dir)
	for _, fault := range append(faults, more...) {
		t.Error(fault)
	}
	return definitions, files
}

// sandboxes is a gateway without upstreams, which runs code.
func sandboxes(t *testing.T) *gateway.Gateway {
	t.Helper()
	cfg := config.Default()
	cfg.Sandbox.Runsc, cfg.Sandbox.Typecheck = testutil.Runsc(t), false
	g, err := gateway.Open(&cfg, &gateway.Options{Logger: testutil.Logger(t), Snapshots: testutil.Snapshots()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// TestShippedTestsPass runs the tests of all shipped definitions, whose code runs in sandboxes.
func TestShippedTestsPass(t *testing.T) {
	definitions, files := loadShipped(t)
	if len(definitions) < 6 {
		t.Errorf("only %d definitions", len(definitions))
	}
	for _, d := range definitions {
		beside := strings.TrimSuffix(d.Path, ".yaml") + "_test.yaml"
		if _, err := os.Stat(beside); err != nil {
			t.Errorf("%s has no test", d.Name)
		}
	}
	results := flowtest.Run(t.Context(), files, flowtest.Options{Definitions: definitions, Programs: sandboxes(t).Service(), Timeout: 30 * time.Second})
	var report strings.Builder
	if err := flowtest.Report(&report, results); err != nil {
		t.Fatal(err)
	}
	t.Log(report.String())
	for _, r := range results {
		if !r.OK() {
			t.Errorf("%s: %s", r.File, r.Test)
		}
	}
}
