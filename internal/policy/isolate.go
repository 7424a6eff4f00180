package policy

import (
	"context"
	"slices"
	"time"

	"sallyport/internal/expr"
)

// ProgramVariables returns the variables of [Settings.Isolate]: those of rules that are known before a program calls anything.
func ProgramVariables() []expr.Var {
	return slices.DeleteFunc(Variables(), func(v expr.Var) bool {
		return !slices.Contains([]string{"principal", "groups", "session", "remote", "read", "time"}, v.Name)
	})
}

// Program is a program that is about to run.
type Program struct {
	// Principal and Session identify the caller. Remote means over HTTP.
	Principal, Session string
	Remote             bool
	// Groups are those of the principal, as in [Call].
	Groups Groups
	// Read are the labels of all data read so far.
	Read []string
	Time time.Time
}

// Isolates reports whether the program must run in a sandbox that no other program uses. An expression that cannot be
// evaluated counts as true.
func (p *Policy) Isolates(ctx context.Context, program Program) bool {
	if p.isolate == nil {
		return false
	}
	out, err := p.isolate.Eval(ctx, expr.Bind(map[string]any{
		"principal": program.Principal, "groups": program.Groups.value(program.Principal), "session": program.Session, "remote": program.Remote, "read": program.Read, "time": program.Time,
	}))
	yes, ok := out.(bool)
	return err != nil || !ok || yes
}

// compileIsolate compiles Settings.Isolate.
func (p *Policy) compileIsolate() []Problem {
	if p.set.Isolate == "" {
		return nil
	}
	env, err := expr.New(ProgramVariables(), &expr.Options{Cost: evalCost})
	if err != nil { // the variables are fixed
		return []Problem{{Rule: -1, Item: -1, Message: err.Error()}}
	}
	var wrong *expr.Error
	if p.isolate, wrong = compileExpr(env, p.set.Isolate, expr.Bool); wrong != nil {
		return []Problem{{Rule: -1, Item: -1, Key: "isolate", At: wrong, Message: wrong.Message}}
	}
	return nil
}
