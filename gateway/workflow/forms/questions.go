package forms

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"sallyport/internal/expr"
	"sallyport/internal/sanitize"
)

// Questions returns the questions for all inputs of a workflow, in order. inputs is the schema of its inputs object, prompts are the
// questions by input name. The engine checks the parts of a schema that a question cannot express. At most 256 are returned.
func Questions(inputs json.RawMessage, prompts map[string]string) ([]Question, error) {
	var object struct {
		Properties json.RawMessage
		Required   []string
	}
	if err := json.Unmarshal(inputs, &object); err != nil {
		return nil, fmt.Errorf("read schema of inputs: %w", err)
	}
	var questions []Question
	err := members(object.Properties, func(name string, schema json.RawMessage) {
		if len(questions) < maxFields {
			q := inputQuestion(name, schema, prompts[name])
			q.Required = slices.Contains(object.Required, name)
			questions = append(questions, q)
		}
	})
	return questions, err
}

// members calls do with each member of an object, in their order.
func members(object json.RawMessage, do func(name string, value json.RawMessage)) error {
	if len(object) == 0 {
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(object))
	if _, err := in.Token(); err != nil {
		return fmt.Errorf("read schema of inputs: %w", err)
	}
	for in.More() {
		name, err := in.Token()
		var value json.RawMessage
		if err == nil {
			err = in.Decode(&value)
		}
		if err != nil {
			return fmt.Errorf("read schema of inputs: %w", err)
		}
		do(fmt.Sprint(name), value)
	}
	return nil
}

// inputQuestion returns the question for one input.
func inputQuestion(name string, of json.RawMessage, prompt string) Question {
	q := Question{Name: name, Type: typeJSON, Title: sanitize.Line(prompt, 200)}
	var said struct {
		Description string
		Default     json.RawMessage
	}
	if json.Unmarshal(of, &said) == nil {
		q.Description = sanitize.Text(said.Description, 1000)
		if v, err := expr.Decode(said.Default); err == nil {
			q.Default = v
		}
	}
	if q.Title == "" {
		q.Title = sanitize.Line(name, 200)
	}
	var s schema
	if read, err := expr.Decode(of); err == nil && decodeInto(read, &s) == nil {
		a := s.toField()
		q.Type, q.Min, q.Max, q.MinLength, q.MaxLength = a.kind, limit(a.min), limit(a.max), a.minLength, a.maxLength
		q.Options = options(a.options)
	}
	return q
}

func limit(v any) any {
	if _, ok := v.(float64); !ok {
		return nil
	}
	return normalizeNumber(v)
}

func options(values []any) []Option {
	var list []Option
	for _, v := range values {
		if o, ok := option(normalizeNumber(v)); ok {
			list = append(list, o)
		}
	}
	return list
}
