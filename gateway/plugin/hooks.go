package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/plugin/folder"
	"sallyport/gateway/toolcall"
	"sallyport/internal/policy"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	// hookTimeout bounds a hook, a recognizer, a check and a renderer.
	hookTimeout = 5 * time.Second
	maxReason   = 300
)

// hook is a function around the calls of some tools.
type hook struct {
	folder.Hook
	entry *entry
}

// hooksOf returns the hooks in the order of plugins and manifests. A plugin that does not run has one that refuses what it guards.
func hooksOf(entries []*entry) (all []*hook) {
	for _, e := range entries {
		if e.runner == nil {
			if patterns := slices.DeleteFunc(slices.Clone(e.guards), func(p string) bool { return !strings.Contains(p, ".") }); len(patterns) > 0 {
				all = append(all, &hook{Hook: folder.Hook{Tools: patterns}, entry: e})
			}
			continue
		}
		for _, h := range e.plugin.Hooks {
			all = append(all, &hook{Hook: h, entry: e})
		}
	}
	return all
}

// around are the hooks of one tool.
type around struct{ before, after []*hook }

// hooksOf returns the hooks of a tool, nil for none.
func (s *state) hooksOf(id tool.ID) *around {
	if len(s.hooks) == 0 {
		return nil
	}
	if known, ok := s.matches.Load(id); ok {
		return known.(*around)
	}
	var found *around
	for _, h := range s.hooks {
		if !matches(h.Tools, id) {
			continue
		}
		if found == nil {
			found = &around{}
		}
		if h.After {
			found.after = append(found.after, h)
		} else {
			found.before = append(found.before, h)
		}
	}
	s.matches.Store(id, found) // ids are those of the catalog, so there is an end of them
	return found
}

// matches reports whether a glob names a tool, or a method of an upstream with a dot in place of its slash.
func matches(globs []string, id tool.ID) bool {
	name := id.Upstream + "." + strings.ReplaceAll(id.Name, "/", ".")
	return slices.ContainsFunc(globs, func(g string) bool { ok, _ := path.Match(g, name); return ok })
}

// Middleware calls the hooks of a call. validate checks the arguments that a hook has changed.
func (p *Plugins) Middleware(validate toolcall.Middleware) toolcall.Middleware {
	return func(next toolcall.Handler) toolcall.Handler {
		changed := validate(next)
		return func(ctx context.Context, c tool.Call) (tool.Result, error) {
			found := p.state.Load().hooksOf(c.Tool)
			if found == nil {
				return next(ctx, c)
			}
			then := next
			for _, h := range found.before {
				args, demand, err := h.before(ctx, c)
				if err != nil {
					args, demand, err = h.failedBefore(ctx, c, err)
				}
				if err != nil {
					return tool.Result{}, err
				}
				if args != nil {
					c.Args, then = args, changed
				}
				if demand != nil {
					ctx = toolcall.WithDemand(ctx, *demand)
				}
				if demand != nil && demand.Action == policy.Deny {
					break
				}
			}
			result, err := then(ctx, c)
			if err != nil {
				return result, err
			}
			for _, h := range slices.Backward(found.after) {
				if result, err = h.after(ctx, c, result); err != nil {
					return tool.Result{}, err
				}
			}
			return result, nil
		}
	}
}

// answer is what a hook returns.
type answer struct {
	Deny      *string          `json:"deny"`
	Ask       *string          `json:"ask"`
	Arguments json.RawMessage  `json:"arguments"`
	Result    *json.RawMessage `json:"result"`
}

// judge calls the hook's function. The answer is nil if the call passes as it is.
func (h *hook) judge(ctx context.Context, args ...any) (*answer, error) {
	if h.entry.runner == nil {
		return nil, &OffError{Plugin: h.entry.name, Reason: h.entry.problem.Error()}
	}
	value, err := h.entry.runner.call(ctx, min(hookTimeout, h.entry.plugin.Timeout), request{Run: h.Run, Args: args})
	if err != nil {
		return nil, err
	}
	if string(value) == "null" || len(value) == 0 {
		return nil, nil //nolint:nilnil // the usual answer
	}
	var a answer
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil || a.Deny == nil && a.Ask == nil && a.Result == nil && a.Arguments == nil {
		return nil, fmt.Errorf("%s must return None, or a dict with deny, ask, arguments or result", h.Run)
	}
	return &a, nil
}

// before returns the arguments that replace those of a call, and what the hook demands; nil for none.
func (h *hook) before(ctx context.Context, c tool.Call) (json.RawMessage, *toolcall.Demand, error) {
	a, err := h.judge(ctx, c.Tool.String(), c.Args)
	switch {
	case a == nil || err != nil:
		return nil, nil, err
	case a.Result != nil || a.Arguments != nil && !bytes.HasPrefix(bytes.TrimSpace(a.Arguments), []byte("{")):
		return nil, nil, fmt.Errorf("%s must return arguments as a dict, and no result", h.Run)
	case a.Deny != nil:
		return nil, h.demand(policy.Deny, c.Tool, *a.Deny), nil
	case a.Ask != nil:
		return a.Arguments, h.demand(policy.Ask, c.Tool, *a.Ask), nil
	}
	return a.Arguments, nil, nil
}

func (h *hook) demand(action policy.Action, id tool.ID, reason string) *toolcall.Demand {
	reason = h.entry.mask(sanitize.Line(reason, maxReason))
	return &toolcall.Demand{Action: action, Rule: "plugin " + h.entry.name, Reason: reason, Message: fmt.Sprintf("plugin %s refuses %s: %s", h.entry.name, id, reason)}
}

// failedBefore returns what becomes of a call that a hook could not judge.
func (h *hook) failedBefore(ctx context.Context, c tool.Call, why error) (json.RawMessage, *toolcall.Demand, error) {
	if ctx.Err() != nil {
		return nil, nil, h.entry.toolError(ctx.Err())
	}
	reason := h.entry.mask(why.Error())
	h.entry.log(ctx, c.Tool, reason, h.Pass)
	if h.Pass {
		return nil, nil, nil
	}
	d := h.demand(policy.Deny, c.Tool, reason)
	d.Message = fmt.Sprintf("plugin %s guards %s and cannot judge the call: %s; tell the user", h.entry.name, c.Tool, sanitize.Line(reason, maxReason))
	return nil, d, nil
}

func (e *entry) log(ctx context.Context, id tool.ID, reason string, passed bool) {
	if e.runner != nil {
		e.runner.log.WarnContext(ctx, "a hook failed", "plugin", e.name, "tool", id.String(), "reason", reason, "passed", passed)
	}
}

// after returns the result of a call after the hook.
func (h *hook) after(ctx context.Context, c tool.Call, result tool.Result) (tool.Result, error) {
	value, err := json.Marshal(result.Value().Plain())
	var a *answer
	if err == nil {
		a, err = h.judge(ctx, c.Tool.String(), c.Args, json.RawMessage(value))
	}
	if err == nil && a != nil && (a.Ask != nil || a.Arguments != nil) {
		err = errors.New(h.Run + " must return a dict with result or deny")
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return result, h.entry.toolError(ctx.Err())
	case err != nil:
		reason := h.entry.mask(err.Error())
		if h.entry.log(ctx, c.Tool, reason, h.Pass); h.Pass {
			return result, nil
		}
		return result, refusal(fmt.Sprintf("plugin %s guards %s and cannot judge the result: %s", h.entry.name, c.Tool, sanitize.Line(reason, maxReason)))
	case a == nil:
		return result, nil
	case a.Deny != nil:
		return result, refusal(fmt.Sprintf("plugin %s withholds the result of %s: %s", h.entry.name, c.Tool, h.entry.mask(sanitize.Line(*a.Deny, maxReason))))
	}
	return replaced(result, h.entry.hide(*a.Result)), nil
}

// refusal is the error of a call whose result may not be seen.
func refusal(message string) error {
	return &tool.Error{Kind: tool.Denied, Message: message, Hint: "the call was made; tell the user"}
}

// replaced returns a result with another value.
func replaced(old tool.Result, value json.RawMessage) tool.Result {
	r := textResult(value)
	r.IsError, r.Form = old.IsError, old.Form
	if old.Structured != nil {
		r.Structured = value
	}
	if old.Raw == nil {
		return r
	}
	fields := map[string]any{"content": []any{map[string]any{"type": "text", "text": r.Content[0].Text}}}
	if r.Structured != nil {
		fields["structuredContent"] = r.Structured
	}
	if r.IsError {
		fields["isError"] = true
	}
	r.Raw, _ = sanitize.JSON(fields) // made of values that encode
	return r
}
