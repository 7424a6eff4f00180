package forms

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sallyport/internal/expr"
	"sallyport/internal/tool"
)

// maxRounds limits how often a client is asked.
const maxRounds = 5

// Filler is a form that is being filled.
type Filler interface {
	// Next and Answer are as the methods of [Form].
	Next(ctx context.Context) (*Ask, error)
	Answer(ctx context.Context, values map[string]any) ([]Problem, error)
}

// Filling is a [Filler] that stores nothing except in State.
type Filling struct {
	Form  *Form
	Env   Env
	State *State
}

// Next implements [Filler].
func (f *Filling) Next(ctx context.Context) (*Ask, error) { return f.Form.Next(ctx, f.Env, f.State) }

// Answer implements [Filler].
func (f *Filling) Answer(ctx context.Context, values map[string]any) ([]Problem, error) {
	return f.Form.Answer(ctx, f.Env, f.State, values)
}

// AskPeer asks the client of a call by elicitation until the form is complete or the client declines. from
// says who asks, in a few words. complete is false if the client declines, cannot be asked, or gives no valid answers
// in five rounds; its valid answers are kept. The error is the filler's, or that of ctx.
func AskPeer(ctx context.Context, peer tool.Peer, from string, f Filler) (complete bool, err error) {
	a := elicitation{peer: peer, from: from, multiSelect: true}
	for range maxRounds {
		ask, err := f.Next(ctx)
		if err != nil || ask == nil {
			return err == nil, err
		}
		values, accepted := a.ask(ctx, ask)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if !accepted {
			return false, nil
		}
		if a.problems, err = f.Answer(ctx, values); err != nil {
			return false, err
		}
	}
	ask, err := f.Next(ctx)
	return ask == nil && err == nil, err
}

// elicitation is an elicitation of one client, in several rounds.
type elicitation struct {
	peer tool.Peer
	from string
	// multiSelect: multiple choices are sent as a list. Clients from before 2025-11-25 reject that.
	multiSelect bool
	problems    []Problem
}

func (a *elicitation) ask(ctx context.Context, ask *Ask) (values map[string]any, accepted bool) {
	if a.peer == nil {
		return nil, false
	}
	reply, err := a.peer.Ask(ctx, "elicitation/create", a.elicit(ask))
	if err != nil && a.multiSelect && ask.hasChoices() && !errors.Is(err, tool.ErrCannotAsk) && ctx.Err() == nil {
		a.multiSelect = false
		reply, err = a.peer.Ask(ctx, "elicitation/create", a.elicit(ask))
	}
	if err != nil {
		return nil, false
	}
	values, accepted, err = ParseElicitation(reply)
	return values, accepted && err == nil
}

func (a *elicitation) elicit(ask *Ask) json.RawMessage {
	return Elicit(ask, a.from, a.problems, a.multiSelect)
}

func (a *Ask) hasChoices() bool {
	for _, q := range a.Fields {
		if q.Type == typeChoices {
			return true
		}
	}
	return false
}

// Elicit returns the parameters of an elicitation/create request with all fields of an Ask, in order. problems are those of the previous
// answer. If lists is false, multiple choices are asked for as one text with commas.
func Elicit(ask *Ask, from string, problems []Problem, lists bool) json.RawMessage {
	required, properties := []string{}, object{}
	for _, q := range ask.Fields {
		properties.add(q.Name, q.schema(lists))
		if q.Required {
			required = append(required, q.Name)
		}
	}
	var schema, params object
	schema.add("type", "object")
	schema.add("properties", properties)
	schema.add("required", required)
	params.add("mode", "form")
	params.add("message", message(ask, from, problems))
	params.add("requestedSchema", schema)
	return params.json()
}

// message returns the text above the fields: who asks, the title, and the problems so far. To the client, Sallyport is the sender.
func message(ask *Ask, from string, problems []Problem) string {
	var text strings.Builder
	text.WriteString(from)
	if ask.Title != "" {
		text.WriteString(": " + ask.Title)
	}
	told := map[string]bool{}
	for _, p := range problems {
		told[p.Field] = true
		text.WriteString("\n" + p.Error())
	}
	for _, q := range ask.Fields {
		if q.Problem != "" && !told[q.Name] {
			text.WriteString("\n" + q.Name + ": " + q.Problem)
		}
	}
	return text.String()
}

// schema returns the protocol's flat schema of a question.
func (q *Question) schema(lists bool) object {
	var s object
	kind, known := wireTypes[q.Type]
	if !known {
		kind = "string"
	}
	if q.Type == typeChoices && !lists {
		kind = "string"
	}
	s.add("type", kind)
	s.add("title", q.Title)
	if text := q.about(lists); text != "" {
		s.add("description", text)
	}
	q.limits(&s, kind)
	q.choices(&s, kind)
	if q.Default != nil {
		s.add("default", q.wireDefault(kind))
	}
	return s
}

var wireTypes = map[string]string{typeInteger: "integer", typeNumber: "number", typeBoolean: "boolean", typeChoices: "array"}

// about returns the description, with what the schema cannot express.
func (q *Question) about(lists bool) string {
	parts := []string{}
	if q.Description != "" {
		parts = append(parts, q.Description)
	}
	switch {
	case q.Type == typeDate || q.Type == typeDatetime:
		if r := q.Range(); r != "" {
			parts = append(parts, "("+r+")")
		}
	case q.Type == typeJSON:
		parts = append(parts, "(as JSON)")
	case q.Type == typeChoices && !lists:
		parts = append(parts, "(any of "+join(names(q.Options))+", with commas between)")
	}
	if q.Pattern != "" {
		parts = append(parts, "(pattern: "+q.Pattern+")")
	}
	return strings.Join(parts, " ")
}

func (q *Question) limits(s *object, kind string) {
	low, high := "minLength", "maxLength"
	switch {
	case kind == "integer" || kind == "number":
		if q.Min != nil {
			s.add("minimum", q.Min)
		}
		if q.Max != nil {
			s.add("maximum", q.Max)
		}
	case kind == "array":
		low, high = "minItems", "maxItems"
	case q.Type == typeChoices:
		return
	case kind == "string":
		if format := wireFormats[q.Type]; format != "" {
			s.add("format", format)
		}
	}
	if q.MinLength > 0 {
		s.add(low, q.MinLength)
	}
	if q.MaxLength > 0 {
		s.add(high, q.MaxLength)
	}
}

var wireFormats = map[string]string{typeEmail: "email", typeURI: "uri", typeDate: "date", typeDatetime: "date-time"}

// choices adds the options: with enumNames, which all protocol revisions accept, or as a list of revision 2025-11-25.
func (q *Question) choices(s *object, kind string) {
	switch {
	case kind == "array":
		any := []object{}
		for _, o := range q.Options {
			var one object
			one.add("const", nameOf(o.Value))
			one.add("title", o.Title)
			any = append(any, one)
		}
		var items object
		items.add("anyOf", any)
		s.add("items", items)
	case q.Type == typeChoice:
		titles := []string{}
		for _, o := range q.Options {
			titles = append(titles, o.Title)
		}
		s.add("enum", names(q.Options))
		s.add("enumNames", titles)
	}
}

// wireDefault returns the default in the type of the schema.
func (q *Question) wireDefault(kind string) any {
	list, several := q.Default.([]any)
	switch {
	case several && q.Type == typeChoices:
		texts := []string{}
		for _, v := range list {
			texts = append(texts, nameOf(v))
		}
		if kind == "string" {
			return join(texts)
		}
		return texts
	case kind == "string" && q.Type == typeJSON:
		text, err := expr.JSON(q.Default)
		if err != nil {
			return ""
		}
		return text
	case kind == "string":
		return nameOf(q.Default)
	}
	return q.Default
}

// ParseElicitation parses the result of an elicitation: accepted is false if the client declined or canceled.
func ParseElicitation(reply json.RawMessage) (values map[string]any, accepted bool, err error) {
	var said struct {
		Action  string
		Content json.RawMessage
	}
	if err := json.Unmarshal(reply, &said); err != nil {
		return nil, false, fmt.Errorf("read an elicitation's result: %w", err)
	}
	if said.Action != "accept" {
		return nil, false, nil
	}
	values = map[string]any{}
	if len(said.Content) == 0 {
		return values, true, nil
	}
	content, err := expr.Decode(said.Content)
	if err != nil {
		return nil, false, fmt.Errorf("read an elicitation's content: %w", err)
	}
	if m, ok := content.(map[string]any); ok {
		values = m
	}
	return values, true, nil
}

// object is a JSON object that keeps the order of its members, since clients show fields in that order.
type object []member

type member struct {
	name  string
	value any
}

func (o *object) add(name string, value any) { *o = append(*o, member{name, value}) }

// MarshalJSON writes the members in order.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for i, m := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := enc.Encode(m.name); err != nil {
			return nil, err
		}
		out.WriteByte(':')
		if err := enc.Encode(m.value); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

func (o object) json() json.RawMessage {
	data, err := o.MarshalJSON()
	var out bytes.Buffer
	if err != nil || json.Compact(&out, data) != nil { // it has only strings, numbers and lists
		return json.RawMessage("{}")
	}
	return out.Bytes()
}
