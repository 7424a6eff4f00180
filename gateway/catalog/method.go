package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// handle handles a call of a protocol method other than tools/call, see [tool.Call].
// It answers lists itself; it checks the others and passes them to the session.
func (c methods) handle(ctx context.Context, call tool.Call, next toolcall.Handler) (tool.Result, error) {
	m, err := c.Member(call.Tool.Upstream)
	if err != nil {
		return tool.Result{}, err
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(call.Args, &args) != nil || args == nil {
		return tool.Result{}, toolcall.Invalid("arguments must be one JSON object", "")
	}
	switch call.Tool.Method() {
	case tool.ListResources, tool.ListTemplates, tool.ListPrompts:
		return c.list(ctx, m, call.Tool.Method())
	case tool.GetPrompt:
		err = c.checkPrompt(ctx, m, args)
	case tool.ReadResource, tool.Subscribe, tool.Unsubscribe:
		_, err = stringArgument(args, "uri", "uris are listed by resources/list, or made from a template of resources/templates/list")
	case tool.SetLogLevel:
		err = checkLogLevel(args)
	case tool.GetTask, tool.UpdateTask, tool.CancelTask:
		if !call.KeepsTasks {
			return tool.Result{}, toolcall.Unknown("method", call.Tool.Name, "")
		}
		_, err = stringArgument(args, "taskId", "it is in the result of the call that became a task")
	case tool.Complete: // the upstream checks it
	default:
		err = toolcall.Unknown("method", call.Tool.Name, "")
	}
	if err != nil {
		return tool.Result{}, err
	}
	return next(ctx, call)
}

// methods checks calls of the protocol's other methods and their arguments.
type methods struct{ *Catalog }

// list answers from the catalog, with the entries as they were sent.
func (c methods) list(ctx context.Context, m *member, method string) (tool.Result, error) {
	v, err := c.loadView(ctx, m)
	if err != nil {
		return tool.Result{}, err
	}
	name, entries := "resources", []json.RawMessage{}
	switch method {
	case tool.ListResources:
		for _, r := range v.offer.Resources {
			entries = append(entries, r.Raw)
		}
	case tool.ListTemplates:
		name = "resourceTemplates"
		for _, t := range v.offer.Templates {
			entries = append(entries, t.Raw)
		}
	case tool.ListPrompts:
		name = "prompts"
		for _, p := range v.offer.Prompts {
			entries = append(entries, p.Raw)
		}
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false) // they are passed on as they are
	if err := enc.Encode(map[string]any{name: entries}); err != nil {
		return tool.Result{}, &tool.Error{Kind: tool.Internal, Message: "the list cannot be written", Err: err}
	}
	return tool.Result{Structured: bytes.TrimSpace(data.Bytes())}, nil
}

// loadView returns the upstream's view, and connects the upstream if nothing is known yet.
func (c methods) loadView(ctx context.Context, m *member) (*view, error) {
	if v := m.view.Load(); v.known {
		return v, nil
	}
	m, err := membership(c).ensureConnected(ctx, m.id)
	if err != nil {
		return nil, err
	}
	return m.view.Load(), nil
}

// checkPrompt rejects arguments that do not match the prompt's definition. Before
// that it refreshes a definition from an earlier run.
func (c methods) checkPrompt(ctx context.Context, m *member, args map[string]json.RawMessage) error {
	v, err := c.loadView(ctx, m)
	if err != nil {
		return err
	}
	err = v.checkPrompt(m.id, args)
	if err == nil {
		return nil
	}
	m, failed := membership(c).ensureConnected(ctx, m.id)
	if failed != nil {
		return err
	}
	if now := m.view.Load(); now != v {
		return now.checkPrompt(m.id, args)
	}
	return err
}

func (v *view) checkPrompt(id string, args map[string]json.RawMessage) error {
	names := make([]string, len(v.offer.Prompts))
	for i, p := range v.offer.Prompts {
		names[i] = p.Name
	}
	name, err := stringArgument(args, "name", oneOf("prompts", names))
	if err != nil {
		return err
	}
	i := slices.Index(names, name)
	if i < 0 {
		err := toolcall.Unknown("prompt", id+" "+name, "")
		if err.Hint = oneOf("prompts", names); suggest.Of(name, names) != "" {
			err.Hint = sanitize.Line("did you mean "+suggest.Of(name, names)+"?", 200)
		}
		return err
	}
	given := map[string]string{}
	if raw, ok := args["arguments"]; ok && json.Unmarshal(raw, &given) != nil {
		return toolcall.Invalid("arguments of a prompt must be one JSON object of strings", promptArguments(v.offer.Prompts[i]))
	}
	return checkPromptArguments(v.offer.Prompts[i], given)
}

func checkPromptArguments(p tool.Prompt, given map[string]string) error {
	var known []string
	for _, a := range p.Arguments {
		known = append(known, a.Name)
	}
	for name := range given {
		if slices.Contains(known, name) {
			continue
		}
		hint := promptArguments(p)
		if near := suggest.Of(name, known); near != "" {
			hint = sanitize.Line("did you mean "+near+"? "+hint, 600)
		}
		return toolcall.Invalid(fmt.Sprintf("unknown argument %q of prompt %s", sanitize.Line(name, 80), sanitize.Line(p.Name, 80)), hint)
	}
	for _, a := range p.Arguments {
		if _, ok := given[a.Name]; a.Required && !ok {
			return toolcall.Invalid(fmt.Sprintf("argument %q of prompt %s is missing", sanitize.Line(a.Name, 80), sanitize.Line(p.Name, 80)), promptArguments(p))
		}
	}
	return nil
}

// promptArguments lists the arguments of a prompt; "?" marks optional ones.
func promptArguments(p tool.Prompt) string {
	names := make([]string, len(p.Arguments))
	for i, a := range p.Arguments {
		if names[i] = a.Name; !a.Required {
			names[i] += "?"
		}
	}
	return oneOf("arguments", names)
}

// oneOf returns a hint that lists the valid names.
func oneOf(what string, names []string) string {
	if len(names) == 0 {
		return "it has no " + what
	}
	return sanitize.Line(what+": "+strings.Join(names[:min(len(names), 30)], ", "), 600)
}

func checkLogLevel(args map[string]json.RawMessage) error {
	levels := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	level, err := stringArgument(args, "level", oneOf("levels", levels))
	if err == nil && !slices.Contains(levels, level) {
		return toolcall.Invalid(fmt.Sprintf("unknown level %q", sanitize.Line(level, 40)), oneOf("levels", levels))
	}
	return err
}

// stringArgument returns a required argument that must be a non-empty string.
func stringArgument(args map[string]json.RawMessage, name, hint string) (string, error) {
	raw, ok := args[name]
	if !ok {
		if near := suggest.Of(name, slices.Sorted(maps.Keys(args))); near != "" {
			hint = sanitize.Line(fmt.Sprintf("you gave %q; ", near)+hint, 600)
		}
		return "", toolcall.Invalid(fmt.Sprintf("argument %q is missing", name), hint)
	}
	var text string
	if json.Unmarshal(raw, &text) != nil || text == "" {
		return "", toolcall.Invalid(fmt.Sprintf("argument %q must be a string that is not empty", name), hint)
	}
	return text, nil
}
