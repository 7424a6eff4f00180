package httpapi

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sallyport/internal/testutil"
)

// TestOpenAPIIsLinted: a linter of others finds nothing to say about the document. What x-events refer to it takes for unused: OpenAPI
// 3.1 has no words for streams.
func TestOpenAPIIsLinted(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(testutil.Clients(t), "@redocly", "cli", "bin", "cli.js"), "lint", "--skip-rule=no-unused-components", "--format=json", "openapi.json")
	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	out, err := cmd.Output()
	var report struct{ Problems []json.RawMessage }
	if err := json.Unmarshal(out, &report); err != nil || report.Problems == nil {
		t.Fatalf("%v: %.1000s", err, out)
	}
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("%v: %.3000s", err, out)
	}
}
