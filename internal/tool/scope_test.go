package tool_test

import (
	"testing"

	"sallyport/internal/tool"
)

// TestMay: an operator may all, who has scopes what they say, everybody else what users may.
func TestMay(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, scope := range tool.Scopes() {
		operating := scope == tool.ScopeOperate || scope == tool.ScopeMetrics
		if tool.May(ctx, scope) == operating {
			t.Errorf("without scopes: %s is %t", scope, !operating)
		}
		if !tool.May(tool.WithOperator(tool.WithScopes(ctx, nil), "cli"), scope) {
			t.Errorf("an operator may not %s", scope)
		}
		if tool.May(tool.WithScopes(ctx, nil), scope) || !tool.May(tool.WithScopes(ctx, []tool.Scope{scope}), scope) {
			t.Errorf("%s does not go by the scopes", scope)
		}
	}
}
