package gateway_test

import (
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// TestSessionsThatCannotBe are refused in words that say what can be, before anything runs.
func TestSessionsThatCannotBe(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Environments = map[string]config.Environment{"default": {}, "data": {}, "plots": {}}
	g, err := gateway.Open(&cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	for _, test := range []struct {
		program execution.Program
		want    string
	}{
		{execution.Program{Session: "a b"}, `session cannot be "a b" (use 1 to 64 letters, digits and ".-_")`},
		{execution.Program{Session: "../x"}, "session cannot be"},
		{execution.Program{Session: "x\x1b[2J"}, `session cannot be "x`},
		{execution.Program{Session: strings.Repeat("x", 65)}, "session cannot be"},
		{execution.Program{Environment: "dat"}, `there is no environment "dat" (did you mean data?)`},
		{execution.Program{Environment: "zzzzzz"}, `there is no environment "zzzzzz" (there are: data, default, plots)`},
	} {
		test.program.Code = "1"
		_, err := g.Executor.Execute(t.Context(), test.program)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\x1b") || tool.AsError(err).Kind != tool.Invalid {
			t.Errorf("%+v: %v", test.program, err)
		}
	}
}

// TestNotesAreSaid: what the sandbox has to say of an execution reaches the model, cleaned.
func TestNotesAreSaid(t *testing.T) {
	t.Parallel()
	e := execution.Result{}
	e.Status, e.Stdout.Text, e.Notes = "ok", "done\n", []string{"big.bin was not kept", "x\x1b[2J\ny"}
	if got, want := e.Text(), "done\nnote: big.bin was not kept\nnote: x y"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
