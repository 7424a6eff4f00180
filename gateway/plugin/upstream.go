package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"sallyport/internal/tool"
)

// Upstream is the tools of one plugin, as an upstream in this process.
type Upstream struct {
	plugins *Plugins
	name    string
}

// Offer returns the tools; none while they are not known, or while the plugin is held.
func (u *Upstream) Offer() tool.Offer {
	e := u.plugins.state.Load().entries[u.name]
	if e == nil || e.runner == nil {
		return tool.Offer{}
	}
	o := e.offer.Load()
	if o == nil {
		return tool.Offer{}
	}
	return tool.Offer{Server: tool.Server{Name: e.name, Version: e.plugin.Version}, Tools: o.tools(&e.plugin)}
}

// Call calls a tool, named as in the manifest. An exception is a result with isError.
func (u *Upstream) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	e := u.plugins.state.Load().entries[u.name]
	if e == nil {
		return tool.Result{}, &tool.Error{Kind: tool.NotFound, Message: "plugin " + u.name + " was removed"}
	}
	value, f, err := e.named(ctx, c.Tool.Name, c.Args)
	if fault, ok := errors.AsType[*Fault](err); ok {
		return tool.Result{IsError: true, Content: []tool.Content{{Type: "text", Text: e.mask(fault.Error())}}}, nil
	}
	if err != nil {
		return tool.Result{}, e.toolError(err)
	}
	return toolResult(value, f), nil
}

// Step calls a step of a plugin for a workflow. Errors are *tool.Error.
func (p *Plugins) Step(ctx context.Context, plugin, step string, args json.RawMessage) (json.RawMessage, error) {
	e := p.state.Load().entries[plugin]
	if e == nil {
		return nil, &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("there is no plugin %.60q", plugin), Hint: "list them: sallyport plugin list"}
	}
	if !slices.Contains(e.plugin.Steps, step) {
		return nil, &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("plugin %s has no step %.60q", plugin, step), Hint: "its steps are in plugin.yaml"}
	}
	value, _, err := e.named(ctx, step, args)
	if fault, ok := errors.AsType[*Fault](err); ok {
		return nil, &tool.Error{Kind: tool.Failed, Message: fmt.Sprintf("step %s of plugin %s failed: %s", step, plugin, e.mask(fault.Error()))}
	}
	if err != nil {
		return nil, e.toolError(err)
	}
	return value, nil
}

// named calls a tool or a step with arguments by name, and returns its description too.
func (e *entry) named(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, function, error) {
	if e.runner == nil {
		return nil, function{}, &OffError{Plugin: e.name, Reason: e.problem.Error()}
	}
	if _, err := e.runner.acquire(ctx); err != nil { // so that the parameters are known
		return nil, function{}, err
	}
	f := e.offer.Load().Functions[name]
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	value, err := e.runner.call(ctx, e.plugin.Timeout, request{Run: name, Kwargs: args, Order: f.Order})
	return e.hide(value), f, err
}

// hide masks the plugin's secrets in a value.
func (e *entry) hide(value json.RawMessage) json.RawMessage { return e.runner.secrets.Hide(value) }

// mask masks the plugin's secrets in a text.
func (e *entry) mask(text string) string {
	if e.runner == nil {
		return text
	}
	return e.runner.secrets.Text(text)
}

// toolError returns the error of a call that a plugin could not answer.
func (e *entry) toolError(err error) error {
	off, ok := errors.AsType[*OffError](err)
	switch {
	case ok:
		return &tool.Error{Kind: tool.Upstream, Message: off.Error(), Hint: "the operator's `sallyport plugin list` says more", Retryable: off.Pause, Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &tool.Error{Kind: tool.Timeout, Message: "plugin " + e.name + " did not answer in time", Err: err}
	case errors.Is(err, context.Canceled):
		return &tool.Error{Kind: tool.Canceled, Message: "the call of plugin " + e.name + " was canceled", Err: err}
	}
	return &tool.Error{Kind: tool.Invalid, Message: "plugin " + e.name + ": " + e.mask(err.Error()), Err: err}
}
