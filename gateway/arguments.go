package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"sallyport/internal/nearest"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

// checked refuses what cannot succeed before the upstream sees it, with an error
// that tells what would: tools that are not there, and arguments that do not fit
// the input schema. A schema that is of no use for that is no reason to refuse a
// call: the upstream then judges for itself.
func (g *Gateway) checked(next Handler) Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		if args := bytes.TrimSpace(call.Args); len(args) == 0 || string(args) == "null" {
			call.Args = json.RawMessage("{}")
		}
		if call.Tool.Method() != "tools/call" {
			return g.method(ctx, call, next)
		}
		_, entry, err := g.catalog.find(ctx, call.Tool)
		if err != nil {
			return tool.Result{}, err
		}
		if err = entry.input().refuse(call.Args); err != nil {
			err = g.recheck(ctx, entry, call, err)
		}
		if err != nil && g.fits(ctx, entry.input(), call) {
			err = nil
		}
		if err != nil {
			return tool.Result{}, err
		}
		return next(ctx, call)
	}
}

// recheck looks at the definition of today before arguments are refused by one of
// an earlier run. It may have come since judged was looked up.
func (g *Gateway) recheck(ctx context.Context, judged *entry, call tool.Call, refused error) error {
	m, err := g.catalog.wake(ctx, call.Tool.Upstream)
	if err != nil {
		return refused
	}
	entry, err := m.find(call.Tool)
	switch {
	case err != nil:
		return err
	case entry == judged:
		return refused
	}
	return entry.input().refuse(call.Args)
}

// refuse returns what is wrong with args, nil if they fit.
func (s *inputSchema) refuse(args json.RawMessage) error {
	var object map[string]json.RawMessage
	if json.Unmarshal(args, &object) != nil || object == nil {
		return &tool.Error{Kind: tool.Invalid, Message: "arguments must be one JSON object"}
	}
	names := slices.Sorted(maps.Keys(object))
	if err := s.refuseUnknown(names); err != nil {
		return err
	}
	invalid := s.validate(args)
	if invalid == nil {
		return nil
	}
	return &tool.Error{Kind: tool.Invalid, Message: "wrong arguments: " + describeInvalid(invalid, s.raw, args), Hint: s.hint(s.misspelt(invalid, names))}
}

// refuseUnknown catches misspelt names even where the schema forgot to forbid
// them: most servers ignore what they do not know, and a model never learns.
func (s *inputSchema) refuseUnknown(names []string) error {
	if s.open {
		return nil
	}
	for _, name := range names {
		if _, known := slices.BinarySearch(s.names, name); !known {
			return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown parameter %q", plain.Line(name, 80)), Hint: s.hint(nearest.Of(name, s.names))}
		}
	}
	return nil
}

// misspelt returns the parameter that is missing while another name much like
// it was given, which the schema allows.
func (s *inputSchema) misspelt(err *jsonschema.ValidationError, names []string) string {
	for _, cause := range err.Causes {
		required, ok := cause.ErrorKind.(*kind.Required)
		if !ok || len(cause.InstanceLocation) > 0 {
			continue
		}
		for _, name := range names {
			if _, known := slices.BinarySearch(s.names, name); known {
				continue
			}
			if near := nearest.Of(name, required.Missing); near != "" {
				return near
			}
		}
	}
	return ""
}

// hint tells which parameters there are, and which one was probably meant.
func (s *inputSchema) hint(near string) string {
	if len(s.names) == 0 {
		return ""
	}
	hint := "parameters: " + strings.Join(s.names[:min(len(s.names), 30)], ", ")
	if near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return plain.Line(hint, 600)
}
