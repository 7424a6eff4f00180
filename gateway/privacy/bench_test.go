package privacy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sallyport/gateway/privacy"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// benchmarkMiddleware measures the middleware alone on a structured result.
func benchmarkMiddleware(b *testing.B, mode config.PrivacyMode, structured string) {
	b.Helper()
	tokens, err := privacy.New(&config.Config{Privacy: config.Privacy{Mode: mode, RestoreTo: []string{"*"}}, Upstreams: []config.Upstream{{ID: "crm"}}}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	result := tool.Result{Structured: json.RawMessage(structured)}
	handler := tokens.Middleware(func(string) bool { return false })(func(context.Context, tool.Call) (tool.Result, error) { return result, nil })
	call := tool.Call{Tool: tool.ID{Upstream: "crm", Name: "list"}, Args: json.RawMessage(`{"to":"[email_1]"}`), Execution: "e-1"}
	b.SetBytes(int64(len(result.Structured)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := handler(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMiddleware(b *testing.B) {
	var rows []string
	for i := range 12 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"full_name":"Ann Smith %c","email":"user%d@example.com","title":"some words about an issue that was closed","updated_at":"2026-01-02T03:04:05Z"}`, i, 'a'+i, i))
	}
	dense := "[" + strings.Join(rows, ",") + "]"
	typical := `{"id":4711,"title":"Export of the report stops after the first page","state":"open","labels":["bug"],"author":{"login":"ann","email":"ann.smith@example.com"},` +
		`"assignee":{"login":"bob","email":"bob@example.org"},"body":"` + strings.Repeat("The export stops when there are more rows than fit on one page. ", 12) + `"}`
	b.Run("off", func(b *testing.B) { benchmarkMiddleware(b, config.PrivacyOff, dense) })
	b.Run("dense", func(b *testing.B) { benchmarkMiddleware(b, config.PrivacyTokenize, dense) })
	b.Run("typical", func(b *testing.B) { benchmarkMiddleware(b, config.PrivacyTokenize, typical) })
}
