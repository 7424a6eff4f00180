package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/internal/tool"
)

// TestFailedCallsAreNoted checks that a program that ignores the errors of its calls is told of them, and no other one.
func TestFailedCallsAreNoted(t *testing.T) {
	t.Parallel()
	type caller = func(ctx context.Context, id, args string) (tool.Result, error)
	programs := map[string]gateway.GoProgram{
		"ignores": func(ctx context.Context, call caller) error {
			_, _ = call(ctx, "calc.add", `{"a":1,"b":2}`)
			_, _ = call(ctx, "calc.nope", `{}`)
			_, _ = call(ctx, "calc.add", `{"a":"x"}`)
			return nil
		},
		"works": func(ctx context.Context, call caller) error {
			_, err := call(ctx, "calc.add", `{"a":1,"b":2}`)
			return err
		},
		"fails": func(ctx context.Context, call caller) error {
			_, err := call(ctx, "calc.nope", `{}`)
			return errors.Join(err)
		},
	}
	g := open(t, settings(map[string]*site{"calc": newSite(t, calc)}), (&gateway.Options{}).InProcess(programs))
	g.Catalog.WaitConnected(t.Context())
	for code, want := range map[string]string{"ignores": "note: 2 of 3 calls failed, first calc.nope: ", "works": "", "fails": ""} {
		e, err := g.Executor.Execute(t.Context(), execution.Program{Code: code, Language: "python"})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Text(); want == "" && strings.Contains(got, "calls failed") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", code, got)
		}
	}
}
