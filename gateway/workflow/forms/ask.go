package forms

import (
	"context"
	"encoding/json"

	"sallyport/internal/expr"
)

// Ask is what a person is asked now: all unknown fields that can be asked. Fields that depend on them are asked later.
type Ask struct {
	Title  string     `json:"title,omitempty"`
	Fields []Question `json:"fields"`
	// Filled are the known values by field; they can be answered again.
	Filled map[string]any `json:"filled,omitempty"`
}

// Question is one field that is asked. Its texts are sanitized, and one line except for Description.
type Question struct {
	Name string `json:"name"`
	// Type is as in [spec.Field], or json for a workflow input of another type: any JSON.
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required"`
	// Default is the initial value. It is not an answer until it is sent.
	Default any      `json:"default,omitempty"`
	Options []Option `json:"options,omitempty"`
	// Min, Max, MinLength, MaxLength and Pattern are as in [spec.Field].
	Min       any    `json:"min,omitempty"`
	Max       any    `json:"max,omitempty"`
	MinLength int    `json:"min_length,omitempty"`
	MaxLength int    `json:"max_length,omitempty"`
	Pattern   string `json:"pattern,omitempty"`
	// Problem is the problem with the current value, "" for none.
	Problem string `json:"problem,omitempty"`
}

// Option is one of the values of a choice: a string, an int64 or a float64.
type Option struct {
	Value any    `json:"value"`
	Title string `json:"title"`
}

// Problem is a problem with one answer, in words for the person who answers.
type Problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	// Hint says what would be valid; it may be "".
	Hint string `json:"hint,omitempty"`
}

// Error returns the field, the message and the hint.
func (p Problem) Error() string {
	text := p.Field + ": " + p.Message
	if p.Hint != "" {
		text += "; " + p.Hint
	}
	return text
}

// Env is the environment of a form.
type Env struct {
	// Vars are the variables of the step's expressions.
	Vars map[string]any
	// Call calls a tool that provides values or options, and returns the same value as a step with that tool. It is called
	// once for a use and its arguments, and again if they have changed. Next and Answer return its errors unchanged.
	Call func(ctx context.Context, c Call) (any, error)
}

// Call is a call of a tool.
type Call struct {
	// Key identifies the call in the form, as part of a path: "city.options", and "city.options[1]" if it is repeated with other arguments.
	Key string
	// Tool is "upstream.tool", Args a JSON object.
	Tool string
	Args json.RawMessage
}

// State is the state of a form that is being filled. The zero State is empty. It can be marshaled
// as JSON. It is not safe for concurrent use.
type State struct {
	// Answers are the answers of people by field; nil for an optional field that was left empty.
	Answers map[string]any `json:"answers,omitempty"`
	// Fetched are the results of tools, by "FIELD.from" or "FIELD.options".
	Fetched map[string]Fetched `json:"drawn,omitempty"`
}

// Fetched is the result of a tool.
type Fetched struct {
	// Args are the arguments, Times is the number of earlier calls with other arguments.
	Args  json.RawMessage `json:"args"`
	Times int             `json:"times,omitempty"`
	Value any             `json:"value"`
}

// UnmarshalJSON decodes integers as int64, as expressions need them.
func (s *State) UnmarshalJSON(data []byte) error {
	var raw struct {
		Answers json.RawMessage
		Drawn   map[string]struct {
			Args  json.RawMessage
			Times int
			Value json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*s = State{}
	if len(raw.Answers) > 0 {
		answers, err := expr.Decode(raw.Answers)
		if err != nil {
			return err
		}
		s.Answers, _ = answers.(map[string]any)
	}
	for key, d := range raw.Drawn {
		value, err := expr.Decode(d.Value)
		if err != nil {
			return err
		}
		s.setFetched(key, Fetched{Args: d.Args, Times: d.Times, Value: value})
	}
	return nil
}

func (s *State) setFetched(key string, d Fetched) {
	if s.Fetched == nil {
		s.Fetched = map[string]Fetched{}
	}
	s.Fetched[key] = d
}

func (s *State) setAnswer(name string, value any) {
	if s.Answers == nil {
		s.Answers = map[string]any{}
	}
	s.Answers[name] = value
}
