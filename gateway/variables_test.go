package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// TestVariables: both languages have them, in sessions too, and lines of errors stay the program's own.
func TestVariables(t *testing.T) {
	t.Parallel()
	g := open(t, withRunsc(t, settings(nil)), nil)
	given := map[string]json.RawMessage{"rows": json.RawMessage(`[1,2.5,"é",null]`), "_n": json.RawMessage(`{"a":true}`)}
	for _, test := range []struct {
		program execution.Program
		status  sandbox.Status
		want    string
	}{
		{execution.Program{Code: "from __future__ import annotations\n[rows[2], rows[3] is None, _n]"}, sandbox.OK, `["é",true,{"a":true}]`},
		{execution.Program{Code: "rows[1] + 1", Session: "s"}, sandbox.OK, "3.5"},
		{execution.Program{Code: "rows[9]"}, sandbox.Failed, "line 1"},
		{execution.Program{Code: "[rows[2], rows.length, _n]", Language: "ts"}, sandbox.OK, `["é",4,{"a":true}]`},
		{execution.Program{Code: "const more = rows.length; more", Language: "ts", Session: "s"}, sandbox.OK, "4"},
	} {
		test.program.Variables = given
		e, err := g.Executor.Execute(t.Context(), test.program)
		if err != nil {
			t.Fatal(err)
		}
		wantText(t, e, test.status, test.want)
	}
	e, err := g.Executor.Execute(t.Context(), execution.Program{Code: "rows"})
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, e, sandbox.Failed, "name 'rows' is not defined")
}

// TestGivenThatCannotBe is refused before anything runs.
func TestGivenThatCannotBe(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	g := open(t, &cfg, nil)
	for name, value := range map[string]string{
		"a b": "1", "1a": "1", "": "1", "__builtins__": "1", "é": "1", "a\x1b": "1", strings.Repeat("x", 65): "1",
		"deep": strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "bad": "\"\xff\"", "cut": "{", "big": `"` + strings.Repeat("x", 1<<20) + `"`,
	} {
		_, err := g.Executor.Execute(t.Context(), execution.Program{Code: "1", Variables: map[string]json.RawMessage{name: json.RawMessage(value)}})
		if err == nil || tool.AsError(err).Kind != tool.Invalid || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 300 {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	if _, err := g.Executor.Execute(t.Context(), execution.Program{Code: "1", Memory: 1 << 40}); err == nil || err.Error() != "a program can have at most 512MiB of memory (leave it out)" {
		t.Error(err)
	}
}
