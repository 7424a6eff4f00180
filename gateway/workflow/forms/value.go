package forms

import (
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/expr"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
)

// convert converts a value to the field's type, nil for none. A string, as sent by a form or a terminal, is converted if
// its meaning is unambiguous.
func convert(q *Question, value any) (any, *Problem) {
	if text, ok := value.(string); ok && strings.TrimSpace(text) == "" && q.Type != typeText {
		return nil, nil
	}
	if value == nil || value == "" {
		return nil, nil
	}
	to := converters[q.Type]
	if to == nil {
		to = oneLine
	}
	return to(q, value)
}

var converters = map[string]func(q *Question, value any) (any, *Problem){
	typeText: text, typeInteger: integer, typeNumber: number, typeBoolean: boolean, typeDate: date, typeDatetime: datetime,
	typeEmail: email, typeURI: uri, typeChoice: choose, typeChoices: chooseSeveral, typeJSON: jsonValue,
}

func (q *Question) reject(message, hint string) (any, *Problem) {
	return nil, &Problem{Field: q.Name, Message: message, Hint: hint}
}

func oneLine(q *Question, value any) (any, *Problem) {
	s, problem := textOrNumber(q, value)
	if problem != nil {
		return nil, problem
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return q.reject("it has line breaks or control characters", "one line of text is wanted")
	}
	return s, nil
}

func text(q *Question, value any) (any, *Problem) {
	s, problem := textOrNumber(q, value)
	if problem != nil {
		return nil, problem
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return q.reject("it has control characters", "plain text is wanted")
	}
	return s, nil
}

// textOrNumber returns a string, or a number as a string.
func textOrNumber(q *Question, value any) (string, *Problem) {
	s, ok := value.(string)
	switch value.(type) {
	case int64, float64:
		s, ok = nameOf(value), true
	}
	switch {
	case !ok:
		return "", &Problem{Field: q.Name, Message: "it is " + expr.Describe(value), Hint: "a text is wanted"}
	case len(s) > maxText:
		return "", &Problem{Field: q.Name, Message: "it is too long", Hint: "a text has up to 64 KiB"}
	case !utf8.ValidString(s):
		return "", &Problem{Field: q.Name, Message: "it is not UTF-8 text"}
	}
	return s, nil
}

func integer(q *Question, value any) (any, *Problem) {
	const want = "a whole number is wanted, such as 12"
	switch v := value.(type) {
	case int64:
		return v, nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v), nil
		}
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		if err == nil {
			return n, nil
		}
		return q.reject(fmt.Sprintf("%q is not a whole number", sanitize.Line(v, 40)), want)
	}
	return q.reject("it is "+expr.Describe(value), want)
}

func number(q *Question, value any) (any, *Problem) {
	const want = "a number is wanted, such as 2.5"
	switch v := value.(type) {
	case int64:
		return v, nil
	case float64:
		return whole(v), nil
	case string:
		v = strings.TrimSpace(v)
		f, err := strconv.ParseFloat(v, 64)
		if n, whole := strconv.ParseInt(v, 10, 64); whole == nil {
			return n, nil
		}
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || strings.ContainsAny(v, "xXpP_") {
			return q.reject(fmt.Sprintf("%q is not a number", sanitize.Line(v, 40)), want)
		}
		return whole(f), nil
	}
	return q.reject("it is "+expr.Describe(value), want)
}

// whole returns an int64 for an integral number, as expressions expect it.
func whole(f float64) any {
	if f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return int64(f)
	}
	return f
}

func boolean(q *Question, value any) (any, *Problem) {
	switch v := value.(type) {
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "yes", "y", "true", "on":
			return true, nil
		case "no", "n", "false", "off":
			return false, nil
		}
		return q.reject(fmt.Sprintf("%q is neither yes nor no", sanitize.Line(v, 40)), "yes or no is wanted")
	}
	return q.reject("it is "+expr.Describe(value), "yes or no is wanted")
}

func date(q *Question, value any) (any, *Problem) {
	return parseText(q, value, "a date", "a date is written as 2026-11-22: year, month, day", func(s string) error {
		_, err := time.Parse(time.DateOnly, s)
		return err
	})
}

func datetime(q *Question, value any) (any, *Problem) {
	return parseText(q, value, "a time", "a time is written as 2026-11-22T09:30:00Z, with Z or an offset such as +02:00", func(s string) error {
		_, err := time.Parse(time.RFC3339, s)
		return err
	})
}

func email(q *Question, value any) (any, *Problem) {
	return parseText(q, value, "an email address", "an address is wanted, such as ann@example.org", func(s string) error {
		a, err := mail.ParseAddress(s)
		if err != nil || a.Address != s || len(s) > 254 || strings.ContainsAny(s, " \"[") {
			return errInvalid
		}
		return nil
	})
}

func uri(q *Question, value any) (any, *Problem) {
	return parseText(q, value, "an absolute URI", "one is wanted, such as https://example.org/page", func(s string) error {
		u, err := url.Parse(s)
		if err != nil || u.Scheme == "" || u.Host == "" && u.Opaque == "" && u.Path == "" || strings.ContainsFunc(s, unicode.IsSpace) {
			return errInvalid
		}
		return nil
	})
}

// parseText returns a one-line text that passes check.
func parseText(q *Question, value any, what, want string, check func(string) error) (any, *Problem) {
	s, ok := value.(string)
	if !ok {
		return q.reject("it is "+expr.Describe(value), want)
	}
	if s = strings.TrimSpace(s); len(s) > maxText || check(s) != nil {
		return q.reject(fmt.Sprintf("%q is not %s", sanitize.Line(s, 80), what), want)
	}
	return oneLine(q, s)
}

// jsonValue accepts any JSON; a string is parsed as JSON.
func jsonValue(q *Question, value any) (any, *Problem) {
	s, ok := value.(string)
	if !ok {
		return value, nil
	}
	if len(s) > maxText {
		return q.reject("it is too long", "a text has up to 64 KiB")
	}
	read, err := expr.Decode([]byte(s))
	if err != nil {
		return q.reject("it is not JSON", `a value in JSON is wanted, such as ["a", "b"] or {"name": 1}`)
	}
	return read, nil
}

// suggestion returns a hint with a suggestion, or with the options.
func suggestion(q *Question, name string) string {
	all := names(q.Options)
	if near := suggest.Of(name, all); near != "" && utf8.RuneCountInString(name) > 2 {
		return fmt.Sprintf("did you mean %q?", sanitize.Line(near, 80))
	}
	if len(all) > 12 {
		return fmt.Sprintf("there are %d options", len(all))
	}
	return "the options are " + sanitize.Line(join(all), 300)
}

// chooseSeveral returns several options without duplicates; in a string they are separated by commas.
func chooseSeveral(q *Question, value any) (any, *Problem) {
	list, ok := value.([]any)
	if s, is := value.(string); is {
		list, ok = split(q, s), true
	}
	if !ok {
		return q.reject("it is "+expr.Describe(value), "a list of options is wanted")
	}
	if len(list) > maxOptions {
		return q.reject(fmt.Sprintf("it has %d choices", len(list)), suggestion(q, ""))
	}
	chosen, seen := []any{}, map[any]bool{}
	for _, item := range list {
		one, problem := choose(q, item)
		if problem != nil {
			return nil, problem
		}
		if !seen[one] {
			seen[one], chosen = true, append(chosen, one)
		}
	}
	if len(chosen) == 0 {
		return nil, nil
	}
	return chosen, nil
}

// split splits a string into options: as a JSON list, as a single option, or at commas.
func split(q *Question, s string) (list []any) {
	if read, err := expr.Decode([]byte(s)); err == nil {
		if list, ok := read.([]any); ok {
			return list
		}
	}
	if _, problem := choose(q, s); problem == nil {
		return []any{s}
	}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
