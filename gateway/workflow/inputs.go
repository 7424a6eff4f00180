package workflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"sallyport/gateway/workflow/forms"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/expr"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// maxInputs limits the size of all inputs of a run together, in bytes.
const maxInputs = 1 << 20

// inputs validates the inputs of a workflow and adds defaults. It reports all problems together.
func (e *Engine) inputs(ctx context.Context, p *program, given json.RawMessage, env map[string]any, peer tool.Peer) (map[string]any, error) {
	if len(given) > maxInputs {
		return nil, &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("inputs have at most %d bytes together, not %d", maxInputs, len(given))}
	}
	v, err := decode(given)
	if err != nil {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "the inputs are not JSON: " + sanitize.Line(err.Error(), 200)}
	}
	in, ok := orEmpty(v).(map[string]any)
	if !ok {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "the inputs must be an object, not " + expr.Describe(v)}
	}
	problems := unknownInputs(p, in)
	if len(problems) == 0 && peer != nil {
		if err := p.ask(ctx, in, peer); err != nil {
			return nil, err
		}
	}
	for i := range p.Inputs {
		if wrong := p.input(ctx, i, in, env); wrong != "" {
			problems = append(problems, wrong)
		}
	}
	if len(problems) > 0 {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "workflow " + p.Name + ": " + strings.Join(problems, "; ")}
	}
	return in, nil
}

// ask asks the starter of a workflow for missing inputs. Unanswered inputs stay missing.
func (p *program) ask(ctx context.Context, in map[string]any, peer tool.Peer) error {
	schemas := map[string][]byte{}
	for _, one := range p.Inputs {
		schemas[one.Name.Text] = one.Schema
	}
	missing := forms.FromInputs(p.Definition, in, func(name string, value any) error { return validate(schemas[name], value, "it") })
	if missing == nil {
		return nil
	}
	fill := &forms.Filling{Form: missing, State: &forms.State{}}
	if complete, err := forms.AskPeer(ctx, peer, "workflow "+p.Name, fill); err != nil || !complete {
		return err
	}
	answers, err := missing.Result(ctx, fill.Env, fill.State)
	maps.Copy(in, answers)
	return err
}

const maxProblems = 10

func unknownInputs(p *program, in map[string]any) (problems []string) {
	names := make([]string, len(p.Inputs))
	for i, known := range p.Inputs {
		names[i] = known.Name.Text
	}
	for name := range in {
		if !slices.Contains(names, name) && len(problems) < maxProblems {
			problem := "there is no input " + sanitize.Line(name, 80)
			if near := suggest.Of(name, names); near != "" {
				problem += fmt.Sprintf(" (did you mean %s?)", near)
			}
			problems = append(problems, problem)
		}
	}
	return problems
}

// input validates one input, after setting its default if it is missing. It returns the problem, "" for none.
func (p *program) input(ctx context.Context, i int, in, env map[string]any) string {
	one := p.Inputs[i]
	name := one.Name.Text
	value, given := in[name]
	switch {
	case !given && p.defaults[i] != nil:
		var err error
		if value, err = p.defaults[i].Eval(ctx, map[string]any{"inputs": in, "env": env, "steps": map[string]any{}, "run": map[string]any{}}); err != nil {
			return "the default of input " + name + ": " + tool.AsError(err).Message
		}
		in[name] = value
	case !given && !one.Optional:
		return "input " + name + " is missing"
	case !given || value == nil && one.Optional:
		in[name] = nil
		return ""
	}
	if err := validate(one.Schema, value, "input "+name); err != nil {
		return tool.AsError(err).Message
	}
	return ""
}

// outputs evaluates and validates the outputs of a workflow.
func (r *run) outputs(ctx context.Context, f *frame, p *program) (map[string]any, error) {
	out := make(map[string]any, len(p.Outputs))
	for i, one := range p.Outputs {
		v, err := f.eval(ctx, p.outputs[i], nil)
		if err == nil {
			err = validate(one.Schema, v, "output "+one.Name.Text)
		}
		if err != nil {
			failed := *tool.AsError(err)
			failed.Hint = fmt.Sprintf("see line %d", one.Name.Line)
			return nil, &failed
		}
		out[one.Name.Text] = v
	}
	return out, nil
}

// environment returns the environment variables that a definition names; nil for unset ones.
func (e *Engine) environment(d *spec.Definition) map[string]any {
	env := map[string]any{}
	for _, name := range d.Env {
		value, ok := e.opts.Env(name.Text)
		if !ok {
			env[name.Text] = nil
			continue
		}
		env[name.Text] = strings.ToValidUTF8(value, "\uFFFD")
	}
	return env
}

// validate validates a value against a JSON Schema; an empty schema allows any value. The error is of kind invalid and starts with what.
func validate(schema []byte, value any, what string) error {
	if len(schema) == 0 {
		return nil
	}
	check, err := compileSchema(schema)
	if err != nil {
		return &tool.Error{Kind: tool.Internal, Message: what + " cannot be checked: its schema is not valid", Err: err}
	}
	err = check.Validate(value)
	wrong, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	return &tool.Error{Kind: tool.Invalid, Message: what + " " + strings.Join(violations(wrong, nil), ", ")}
}

func compileSchema(schema []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.AssertFormat()
	if err := c.AddResource("definition:///schema", doc); err != nil {
		return nil, err
	}
	return c.Compile("definition:///schema")
}

// noLoader fetches nothing.
type noLoader struct{}

// Load always fails.
func (noLoader) Load(string) (any, error) { return nil, errors.New("schemas are not fetched") }

// violations appends the messages of the innermost validation errors to list.
func violations(wrong *jsonschema.ValidationError, list []string) []string {
	if len(wrong.Causes) == 0 && len(list) < maxProblems {
		text := wrong.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		if len(wrong.InstanceLocation) > 0 {
			text = "at " + strings.Join(wrong.InstanceLocation, ".") + ": " + text
		}
		return append(list, sanitize.Line(text, 300))
	}
	for _, cause := range wrong.Causes {
		list = violations(cause, list)
	}
	return list
}
