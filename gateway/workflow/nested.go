package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sallyport/gateway/workflow/spec"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// maxDepth limits the nesting of workflows.
const maxDepth = 8

// runNested runs another workflow within the run, with the definition at the time when the step starts.
func (r *run) runNested(ctx context.Context, f *frame, n *node, do *spec.Nested, at location, attempt int) (result, error) {
	args, err := toolRun{r}.arguments(ctx, f, n)
	if err != nil {
		return result{}, err
	}
	if out, done, err := (toolRun{r}).callStub(ctx, n, at, attempt, args); done || err != nil {
		return out, err
	}
	if slices.Contains(f.chain, do.Name.Text) || len(f.chain) > maxDepth {
		return result{}, &tool.Error{Kind: tool.Invalid, Message: "workflows nest without end, or too deep: " + strings.Join(append(slices.Clone(f.chain), do.Name.Text), " > ")}
	}
	begun, p, err := r.beginNested(ctx, do.Name.Text, args, at, attempt)
	if err != nil {
		return result{}, err
	}
	inputs, err := decode(begun.Inputs)
	if err != nil {
		return result{}, err
	}
	env, err := decode(begun.Env)
	if err != nil {
		return result{}, err
	}
	inner := newFrame(map[string]any{"inputs": orEmpty(inputs), "env": orEmpty(env), "run": f.vars["run"]}, append(slices.Clone(f.chain), do.Name.Text))
	if _, err := r.sequence(ctx, inner, p.steps, at); err != nil {
		return result{}, err
	}
	out, err := r.outputs(ctx, inner, p)
	return result{status: outcomeOK, value: out}, err
}

// beginNested returns the start data and program of a nested workflow: from the log, else from the current definition, which it logs.
func (r *run) beginNested(ctx context.Context, name string, args json.RawMessage, at location, attempt int) (Started, *program, error) {
	if at.history != nil && at.history.start != nil {
		p, err := liveRuns{r.engine}.programOf(*at.history.start)
		return *at.history.start, p, err
	}
	d, err := r.engine.definition(name)
	if err != nil {
		return Started{}, nil, err
	}
	p, err := r.engine.programs.get(d)
	if err != nil {
		return Started{}, nil, err
	}
	begun, err := r.engine.prepare(ctx, p, args, nil)
	if err != nil {
		return Started{}, nil, err
	}
	r.log.buffer(Event{Kind: Began, Path: at.path, Attempt: attempt, Start: &begun})
	return begun, p, nil
}

// prepare returns the start data of a workflow: its source and its validated inputs.
func (e *Engine) prepare(ctx context.Context, p *program, given json.RawMessage, peer tool.Peer) (Started, error) {
	env := e.environment(p.Definition)
	in, err := e.inputs(ctx, p, given, env, peer)
	if err != nil {
		return Started{}, err
	}
	s := Started{Workflow: p.Name, Path: p.Path, Source: string(p.Source), Files: filesOf(p.Definition)}
	if s.Inputs, err = encode(in, maxInputs); err != nil {
		return Started{}, err
	}
	s.Env, err = encode(env, maxInputs)
	return s, err
}

// filesOf returns the code files of a definition by name, nil for none.
func filesOf(d *spec.Definition) map[string]string {
	files := map[string]string{}
	spec.Walk(d.Steps, func(s *spec.Step, _ []*spec.Step) {
		if code, ok := s.Do.(*spec.Code); ok && code.File != nil {
			files[code.File.Text] = code.Text.Text
		}
	})
	if len(files) == 0 {
		return nil
	}
	return files
}

// definition returns the current definition of a workflow.
func (e *Engine) definition(name string) (*spec.Definition, error) {
	var names []string
	for _, d := range e.opts.Definitions() {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	wrong := &tool.Error{Kind: tool.NotFound, Message: "there is no workflow " + sanitize.Line(name, 80), Hint: "sallyport workflow list"}
	if near := suggest.Of(name, names); near != "" {
		wrong.Hint = fmt.Sprintf("did you mean %s?", near)
	}
	return nil, wrong
}
