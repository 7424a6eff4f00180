package forms

import (
	"context"
	"encoding/json"

	"sallyport/internal/expr"
)

// Ask is what a person is asked now: all fields that are not known and can be asked, those that depend on them later.
type Ask struct {
	Title  string     `json:"title,omitempty"`
	Fields []Question `json:"fields"`
	// Filled is what is known already, by field; it can be answered again.
	Filled map[string]any `json:"filled,omitempty"`
}

// Question is one field that is asked. All its texts are one line, but for Description, and fit to be shown.
type Question struct {
	Name string `json:"name"`
	// Type is as in [spec.Field]; or json for an input of a workflow that is none of those: a text that is JSON.
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required"`
	// Default is what is filled in before a person answers; it counts when it is sent.
	Default any      `json:"default,omitempty"`
	Options []Option `json:"options,omitempty"`
	// Min, Max, MinLength, MaxLength and Pattern are as in [spec.Field].
	Min       any    `json:"min,omitempty"`
	Max       any    `json:"max,omitempty"`
	MinLength int    `json:"min_length,omitempty"`
	MaxLength int    `json:"max_length,omitempty"`
	Pattern   string `json:"pattern,omitempty"`
	// Problem is what is wrong with the current value, "" for none.
	Problem string `json:"problem,omitempty"`
}

// Option is one of the values of a choice: a text, an int64 or a float64.
type Option struct {
	Value any    `json:"value"`
	Title string `json:"title"`
}

// Problem is what is wrong with one answer, in words for who gave it.
type Problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	// Hint says what would be right; it may be "".
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

// Env is what a form is filled within.
type Env struct {
	// Vars are what the step's expressions see.
	Vars map[string]any
	// Call calls a tool that values or options come from, and returns what a step of that tool would come to. It is called
	// once for a use and its arguments, and again where they have changed. An error ends Next or Answer as it is.
	Call func(ctx context.Context, c Call) (any, error)
}

// Call is one call of a tool.
type Call struct {
	// Key tells the calls of a form apart, as part of a path: "city.options", and "city.options[1]" when it is made again with other arguments.
	Key string
	// Tool is "upstream.tool", Args an object in JSON.
	Tool string
	Args json.RawMessage
}

// State is what is known of a form that is being filled. The zero State is one of which nothing is. It is written and
// read as JSON; who changes it must not use it at once elsewhere.
type State struct {
	// Answers are what people gave, by field; nil where they left an optional field empty.
	Answers map[string]any `json:"answers,omitempty"`
	// Drawn is what tools gave, by "FIELD.from" or "FIELD.options".
	Drawn map[string]Drawn `json:"drawn,omitempty"`
}

// Drawn is what a tool gave.
type Drawn struct {
	// Args are what it was called with, Times how often it was called before that with others.
	Args  json.RawMessage `json:"args"`
	Times int             `json:"times,omitempty"`
	Value any             `json:"value"`
}

// UnmarshalJSON reads whole numbers as such, as expressions want them.
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
		s.keep(key, Drawn{Args: d.Args, Times: d.Times, Value: value})
	}
	return nil
}

func (s *State) keep(key string, d Drawn) {
	if s.Drawn == nil {
		s.Drawn = map[string]Drawn{}
	}
	s.Drawn[key] = d
}

func (s *State) answer(name string, value any) {
	if s.Answers == nil {
		s.Answers = map[string]any{}
	}
	s.Answers[name] = value
}
