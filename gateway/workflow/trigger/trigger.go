// Package trigger starts runs of workflows automatically: [Scheduler] by the schedules of the definitions, and [Hooks] for
// each request that is signed with a workflow's secret. Each start has a key, so that a repeated trigger starts one run.
package trigger

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/expr"
	"sallyport/internal/tool"
)

// Starter starts runs. [workflow.Engine] implements it.
type Starter interface {
	Start(ctx context.Context, start workflow.Start) (workflow.Run, error)
}

// Options configure both kinds of triggers.
type Options struct {
	// Definitions returns the current workflows. It is required, and must be safe for concurrent use.
	Definitions func() []*spec.Definition
	// Starter starts the runs. It is required.
	Starter Starter
	// Secrets are the webhook secrets by name.
	Secrets map[string]string
	// Env looks up environment variables; nil is os.LookupEnv.
	Env func(name string) (string, bool)
	// Logger logs starts and failures; nil discards.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// find returns a workflow by name, nil if there is none.
func (o Options) find(name string) *spec.Definition {
	for _, d := range o.Definitions() {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// inputs evaluates the "with" of a trigger. Expressions may use env and vars.
func (o Options) inputs(ctx context.Context, d *spec.Definition, with spec.Value, vars map[string]any) (json.RawMessage, error) {
	if with.Kind == spec.None {
		return json.RawMessage("{}"), nil
	}
	names, values := []expr.Var{{Name: "env", Type: expr.Any}}, map[string]any{"env": o.env(d)}
	for name, value := range vars {
		names, values[name] = append(names, expr.Var{Name: name, Type: expr.Any}), value
	}
	bound, problems := template.Compile(template.Only(names...), with)
	if len(problems) > 0 {
		at := problems[0].Text.At(problems[0].Offset)
		return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s:%d:%d: %s", d.Path, at.Line, at.Column, problems[0].Message), Hint: problems[0].Hint}
	}
	value, err := bound.Eval(ctx, values)
	if err != nil {
		return nil, err
	}
	if _, object := value.(map[string]any); !object {
		return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s:%d:%d: the inputs of workflow %s are not a map", d.Path, with.Line, with.Column, d.Name)}
	}
	return json.Marshal(value)
}

func (o Options) env(d *spec.Definition) map[string]any {
	env := map[string]any{}
	for _, name := range d.Env {
		if value, set := o.Env(name.Text); set {
			env[name.Text] = value
		}
	}
	return env
}
