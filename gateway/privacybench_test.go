package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// benchmarkPrivate measures the middleware alone on a structured result of 2 KB.
func benchmarkPrivate(b *testing.B, mode config.PrivacyMode) {
	b.Helper()
	g := &Gateway{log: slog.New(slog.DiscardHandler)}
	if err := g.privacy.adopt(&config.Config{Privacy: config.Privacy{Mode: mode, RestoreTo: []string{"*"}}, Upstreams: []config.Upstream{{ID: "crm"}}}); err != nil {
		b.Fatal(err)
	}
	var rows []string
	for i := range 12 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"full_name":"Ann Smith %c","email":"user%d@example.com","title":"some words about an issue that was closed","updated_at":"2026-01-02T03:04:05Z"}`, i, 'a'+i, i))
	}
	result := tool.Result{Structured: json.RawMessage("[" + strings.Join(rows, ",") + "]")}
	handler := g.private(func(context.Context, tool.Call) (tool.Result, error) { return result, nil })
	call := tool.Call{Tool: tool.ID{Upstream: "crm", Name: "list"}, Args: json.RawMessage(`{"to":"[EMAIL_1]"}`), Execution: "e-1"}
	b.SetBytes(int64(len(result.Structured)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := handler(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPrivacy(b *testing.B) {
	b.Run("off", func(b *testing.B) { benchmarkPrivate(b, config.PrivacyOff) })
	b.Run("tokenize", func(b *testing.B) { benchmarkPrivate(b, config.PrivacyTokenize) })
}
