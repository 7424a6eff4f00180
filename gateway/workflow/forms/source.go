package forms

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/internal/expr"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// fetchSource returns the value of a source. The result of a tool is reused if its arguments have not changed.
func (w *walk) fetchSource(f *field, use string, s *source) (any, error) {
	if s.tool == "" {
		return w.eval(s.value, nil)
	}
	value, err := w.eval(s.with, nil)
	if err != nil {
		return nil, err
	}
	args, err := arguments(value)
	if err != nil {
		return nil, err
	}
	key := f.name + "." + use
	drawn, before := w.state.Fetched[key]
	if !before || !bytes.Equal(drawn.Args, args) {
		if drawn, err = w.call(s.tool, key, args, before, drawn.Times); err == nil && s.cachesOutput() {
			drawn.Value, err = w.eval(s.output, map[string]any{"output": drawn.Value})
		}
		if err != nil {
			return nil, err
		}
		w.state.setFetched(key, drawn)
	}
	if s.output == nil || s.cachesOutput() {
		return drawn.Value, nil
	}
	return w.eval(s.output, map[string]any{"output": drawn.Value})
}

// cachesOutput reports whether the picked part of a result cannot change, so that only that part is stored.
func (s *source) cachesOutput() bool { return s.output != nil && !s.output.Uses("form") }

func (w *walk) call(name, key string, args json.RawMessage, before bool, times int) (Fetched, error) {
	if w.env.Call == nil {
		return Fetched{}, &tool.Error{Kind: tool.Invalid, Message: "this form cannot call " + name + " here"}
	}
	path := key
	if before {
		times++
		path = fmt.Sprintf("%s[%d]", key, times)
	}
	value, err := w.env.Call(w.ctx, Call{Key: path, Tool: name, Args: args})
	return Fetched{Args: args, Times: times, Value: value}, err
}

// arguments returns the JSON of a call's arguments.
func arguments(value any) (json.RawMessage, error) {
	if value == nil {
		return json.RawMessage("{}"), nil
	}
	if _, ok := value.(map[string]any); !ok {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "the arguments of a call are not an object"}
	}
	text, err := expr.JSON(value)
	return json.RawMessage(text), err
}

func (w *walk) options(f *field) ([]Option, error) {
	value, err := w.fetchSource(f, "options", f.options)
	if err != nil {
		return nil, err
	}
	options, wrong := f.choices(value)
	if wrong != nil {
		return nil, wrong
	}
	return options, nil
}

// choices returns the options in a value, without duplicates. Their titles are sanitized.
func (f *field) choices(value any) ([]Option, *tool.Error) {
	list, ok := value.([]any)
	if !ok && value != nil {
		return nil, f.badOptions("they are not a list", "options is a list of texts or numbers, or of {value, title}")
	}
	if len(list) > maxOptions {
		return nil, f.badOptions(fmt.Sprintf("there are %d, and at most %d can be", len(list), maxOptions), "")
	}
	options, seen := make([]Option, 0, len(list)), map[string]bool{}
	for i, item := range list {
		o, ok := option(item)
		if !ok {
			return nil, f.badOptions(fmt.Sprintf("number %d is invalid", i+1), "an option is a text or a number, or {value, title}; a text has up to 1024 bytes")
		}
		if name := nameOf(o.Value); !seen[name] {
			seen[name], options = true, append(options, o)
		}
	}
	return options, nil
}

func (f *field) badOptions(message, hint string) *tool.Error {
	return &tool.Error{Kind: tool.Invalid, Message: "the options of field " + f.name + ": " + message, Hint: hint}
}

func option(item any) (o Option, ok bool) {
	o.Value = item
	if m, isMap := item.(map[string]any); isMap {
		o.Value = m["value"]
		o.Title, _ = m["title"].(string)
	}
	switch v := o.Value.(type) {
	case string:
		ok = strings.TrimSpace(v) == v && v != "" && len(v) <= maxOption && utf8.ValidString(v)
	case int64, float64:
		ok = true
	}
	if o.Title = sanitize.Line(o.Title, 200); o.Title == "" {
		o.Title = sanitize.Line(nameOf(o.Value), 200)
	}
	return o, ok
}

// nameOf returns an option's value as a string.
func nameOf(value any) string {
	text, err := expr.Text(value)
	if err != nil {
		return ""
	}
	return text
}

// names returns the values of options as strings.
func names(options []Option) []string {
	out := make([]string, len(options))
	for i, o := range options {
		out[i] = nameOf(o.Value)
	}
	return out
}

// choose returns the value of the option that an answer names: by value, else by a unique title.
func choose(q *Question, value any) (any, *Problem) {
	name := nameOf(value)
	if text, ok := value.(string); ok {
		name = strings.TrimSpace(text)
	}
	if i := slices.IndexFunc(q.Options, func(o Option) bool { return nameOf(o.Value) == name }); i >= 0 {
		return q.Options[i].Value, nil
	}
	var titled []Option
	for _, o := range q.Options {
		if strings.EqualFold(o.Title, name) {
			titled = append(titled, o)
		}
	}
	if len(titled) == 1 {
		return titled[0].Value, nil
	}
	return nil, &Problem{Field: q.Name, Message: fmt.Sprintf("%q is none of the options", sanitize.Line(name, 80)), Hint: suggestion(q, name)}
}
