package forms

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/gateway/workflow/spec"
	"sallyport/internal/sanitize"
)

// errInvalid says that a text has an invalid format.
var errInvalid = errors.New("it is invalid")

// Read converts an answer to the type of the question, nil for none, and validates it. The
// form may find more problems, since only it has the rules.
func (q *Question) Read(value any) (any, *Problem) {
	value, problem := convert(q, value)
	if problem == nil && value == nil && q.Required {
		problem = &Problem{Field: q.Name, Message: "it needs an answer"}
	}
	if problem != nil || value == nil {
		return nil, problem
	}
	f := field{Field: &spec.Field{}}
	if q.Pattern != "" {
		f.pattern, _ = regexp.Compile("^(?:" + q.Pattern + ")$") // a shortened pattern is left to the form
	}
	return value, f.verify(q, value)
}

// verify checks a value of the right type against its bounds.
func (f *field) verify(q *Question, value any) *Problem {
	problem := q.checkRange(value)
	if problem == nil {
		problem = q.checkLength(value)
	}
	if text, ok := value.(string); ok && problem == nil && f.pattern != nil && !f.pattern.MatchString(text) {
		problem = &Problem{Field: q.Name, Message: "it does not match the pattern", Hint: "the pattern is " + q.Pattern}
		if f.Message != "" {
			problem.Message, problem.Hint = sanitize.Line(f.Message, 500), ""
		}
	}
	if problem == nil && f.check != nil {
		if err := f.check(value); err != nil {
			problem = &Problem{Field: q.Name, Message: sanitize.Line(err.Error(), 500)}
		}
	}
	return problem
}

// checkRange checks a value against Min and Max.
func (q *Question) checkRange(value any) *Problem {
	if q.Min != nil && compare(q.Type, value, q.Min) < 0 || q.Max != nil && compare(q.Type, value, q.Max) > 0 {
		return &Problem{Field: q.Name, Message: "it is out of range", Hint: "wanted is " + q.Range()}
	}
	return nil
}

// Range describes the range from Min to Max, "" if there is none.
func (q *Question) Range() string {
	switch {
	case q.Min != nil && q.Max != nil:
		return fmt.Sprintf("%s to %s", nameOf(q.Min), nameOf(q.Max))
	case q.Min != nil:
		return "at least " + nameOf(q.Min)
	case q.Max != nil:
		return "at most " + nameOf(q.Max)
	}
	return ""
}

// compare orders two values of an ordered type.
func compare(kind string, a, b any) int {
	if kind == typeDatetime {
		return parseTime(a).Compare(parseTime(b))
	}
	if s, ok := a.(string); ok {
		t, _ := b.(string)
		return cmp.Compare(s, t)
	}
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(float(a), float(b))
}

func parseTime(v any) time.Time {
	s, _ := v.(string)
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

func float(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// checkLength checks the number of characters or choices against the bounds.
func (q *Question) checkLength(value any) *Problem {
	n, unit := 0, "characters"
	switch v := value.(type) {
	case string:
		n = utf8.RuneCountInString(v)
	case []any:
		n, unit = len(v), "choices"
	default:
		return nil
	}
	switch {
	case q.MinLength > 0 && n < q.MinLength:
		return &Problem{Field: q.Name, Message: fmt.Sprintf("it has %d %s", n, unit), Hint: fmt.Sprintf("at least %d are wanted", q.MinLength)}
	case q.MaxLength > 0 && n > q.MaxLength:
		return &Problem{Field: q.Name, Message: fmt.Sprintf("it has %d %s", n, unit), Hint: fmt.Sprintf("at most %d are wanted", q.MaxLength)}
	}
	return nil
}

func join(names []string) string { return strings.Join(names, ", ") }
