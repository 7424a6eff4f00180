package workflowcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/cmd/sallyport/internal/engine"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/forms"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// maxInput bounds the file of an input, in bytes, as the API bounds requests.
const maxInput = 1 << 20

// inputs returns the inputs of the command line. In a terminal it asks for missing ones.
func (w *watcher) inputs(ctx context.Context, g *engine.Client, l runFlags) (json.RawMessage, error) {
	var info workflow.Info
	if err := g.Get(ctx, "/workflows/"+url.PathEscape(l.workflow), &info); err != nil {
		return nil, err
	}
	given, err := parseInputs(l.inputs, info.Inputs)
	if err != nil {
		return nil, err
	}
	if cli.IsTerminal(w.Stdin) {
		if err := w.askInputs(ctx, info, given); err != nil {
			return nil, err
		}
	}
	return json.Marshal(given)
}

// askInputs asks for inputs that are required and missing.
func (w *watcher) askInputs(ctx context.Context, info workflow.Info, given map[string]any) error {
	d, err := spec.Load(info.Path)
	if err != nil || d.Digest != info.Digest {
		return nil //nolint:nilerr // the engine says what is missing
	}
	f := forms.FromInputs(d, given, nil)
	if f == nil {
		return nil
	}
	filling := &forms.Filling{Form: f, State: &forms.State{}}
	if err := w.userPrompter().fill(ctx, filling); err != nil {
		return err
	}
	values, err := f.Result(ctx, filling.Env, filling.State)
	maps.Copy(given, values)
	return err
}

// parseInputs parses the values of --input with the schema of the inputs.
func parseInputs(texts []string, schema json.RawMessage) (map[string]any, error) {
	types, err := inputTypes(schema)
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	for _, text := range texts {
		if err := addInput(given, text, types); err != nil {
			return nil, err
		}
	}
	return given, nil
}

// inputTypes returns the allowed types of each input; none if its schema has no type.
func inputTypes(schema json.RawMessage) (map[string][]string, error) {
	var object struct {
		Properties map[string]struct{ Type any }
	}
	if err := json.Unmarshal(schema, &object); err != nil {
		return nil, fmt.Errorf("read schema of inputs: %w", err)
	}
	types := map[string][]string{}
	for name, p := range object.Properties {
		types[name] = []string{}
		switch of := p.Type.(type) {
		case string:
			types[name] = []string{of}
		case []any:
			for _, one := range of {
				types[name] = append(types[name], fmt.Sprint(one))
			}
		}
	}
	return types, nil
}

func addInput(given map[string]any, text string, types map[string][]string) error {
	if rest, isFile := strings.CutPrefix(text, "@"); isFile {
		data, err := readInput(rest)
		if err != nil {
			return err
		}
		return addObject(given, data, text)
	}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return addObject(given, []byte(text), "--input")
	}
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("the input %.60q has no value", text), Hint: "write NAME=VALUE, NAME=@FILE, @FILE or a JSON object"}
	}
	of, known := types[name]
	if !known {
		return unknownInput(name, types)
	}
	if rest, isFile := strings.CutPrefix(value, "@"); isFile {
		data, err := readInput(rest)
		if err != nil {
			return err
		}
		value = string(data)
	}
	read, err := inputValue(name, value, of)
	given[name] = read
	return err
}

func unknownInput(name string, types map[string][]string) error {
	err := &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("the workflow has no input %.60q", name), Hint: "it has " + strings.Join(slices.Sorted(maps.Keys(types)), ", ")}
	if len(types) == 0 {
		err.Hint = "it has none"
	}
	if near := suggest.Of(name, slices.Sorted(maps.Keys(types))); near != "" {
		err.Hint = "did you mean " + near + "?"
	}
	return err
}

// inputValue returns text itself if the input is a string, else its value as JSON.
func inputValue(name, text string, of []string) (any, error) {
	if len(of) == 1 && of[0] == "string" {
		return text, nil
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	if len(of) == 0 || slices.Contains(of, "string") {
		return text, nil
	}
	return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("the input %s must be %s, not %.60q", name, strings.Join(of, " or "), text), Hint: "write it as JSON"}
}

func addObject(given map[string]any, data []byte, from string) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return &tool.Error{Kind: tool.Invalid, Message: from + " is not a JSON object: " + err.Error()}
	}
	for name, value := range object {
		given[name] = value
	}
	return nil
}

func readInput(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &tool.Error{Kind: tool.Invalid, Message: err.Error(), Err: err}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxInput+1))
	if err != nil {
		return nil, &tool.Error{Kind: tool.Invalid, Message: err.Error(), Err: err}
	}
	if len(data) > maxInput {
		return nil, &tool.Error{Kind: tool.Invalid, Message: path + " is larger than 1 MiB, the limit for the inputs of a run"}
	}
	return data, nil
}

// parseAnswers parses the values of --answer: values of fields, by the path of the step.
func parseAnswers(texts []string) (map[string]map[string]any, error) {
	given := map[string]map[string]any{}
	for _, text := range texts {
		where, value, ok := strings.Cut(text, "=")
		dot := strings.LastIndex(where, ".")
		if !ok || dot < 1 || dot == len(where)-1 {
			return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("--answer %.60q names no field of a step", text), Hint: "write STEP.FIELD=VALUE"}
		}
		step, field := where[:dot], where[dot+1:]
		if given[step] == nil {
			given[step] = map[string]any{}
		}
		if _, twice := given[step][field]; twice {
			return nil, &tool.Error{Kind: tool.Invalid, Message: "--answer " + where + " is given twice"}
		}
		given[step][field] = value
	}
	return given, nil
}
