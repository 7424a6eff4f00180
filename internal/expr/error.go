package expr

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/interpreter"

	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
)

// Error is the first error in an expression.
type Error struct {
	// Offset is in bytes from the start; Line and Column count from 1, columns in characters.
	Offset, Line, Column int
	// Message is one line.
	Message string
}

// Error returns "line:column: message".
func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

// maxMessage bounds an error message, in bytes.
const maxMessage = 200

var (
	undeclared     = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	selection      = regexp.MustCompile(`^type '([^']*)' does not support field selection`)
	overload       = regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '([^']*)'`)
	operator       = regexp.MustCompile(`^_?(\W+?)_?$`)
	positionPrefix = regexp.MustCompile(`^ERROR: <input>:-?\d+:-?\d+: `)
)

// firstError returns the error with the lowest position.
func (e *Env) firstError(source string, errs []*cel.Error) *Error {
	first := errs[0]
	for _, other := range errs[1:] {
		if at, than := other.Location, first.Location; at.Line() < than.Line() || at.Line() == than.Line() && at.Column() < than.Column() {
			first = other
		}
	}
	out := place(source, first.Location)
	if name := undeclared.FindStringSubmatch(first.Message); name != nil {
		out.Message = sanitize.Line(e.undeclaredMessage(name[1]), maxMessage)
	} else {
		out.Message = rewriteMessage(first.Message)
	}
	return out
}

// undeclaredMessage returns the message for an undeclared name, with a suggestion.
func (e *Env) undeclaredMessage(name string) string {
	if near := suggest.Of(name, e.names); near != "" {
		return fmt.Sprintf("there is no %s; did you mean %q?", name, near)
	}
	return fmt.Sprintf("there is no %s; the variables are %s", name, strings.Join(e.names, ", "))
}

// place converts a location into a position within the source.
func place(source string, at common.Location) *Error {
	line, column := max(at.Line(), 1), max(at.Column(), 0)
	rest, offset := source, 0
	for range line - 1 {
		_, after, found := strings.Cut(rest, "\n")
		if !found {
			break
		}
		offset += len(rest) - len(after)
		rest = after
	}
	rest, _, _ = strings.Cut(rest, "\n")
	out := &Error{Line: 1 + strings.Count(source[:offset], "\n"), Column: 1, Offset: offset}
	for ; column > 0 && rest != ""; column-- {
		_, size := utf8.DecodeRuneInString(rest)
		rest, out.Offset, out.Column = rest[size:], out.Offset+size, out.Column+1
	}
	return out
}

// rewriteMessage makes CEL's own messages readable.
func rewriteMessage(message string) string {
	message = positionPrefix.ReplaceAllString(message, "")
	message, _, _ = strings.Cut(message, "\n")
	if parts := overload.FindStringSubmatch(message); parts != nil {
		name := parts[1]
		if op := operator.FindStringSubmatch(name); op != nil {
			name = op[1]
		}
		return sanitize.Line(fmt.Sprintf("%s cannot be applied to %s", name, parts[2]), maxMessage)
	}
	if parts := selection.FindStringSubmatch(message); parts != nil {
		return sanitize.Line(fmt.Sprintf("a value of type %s has no members", parts[1]), maxMessage)
	}
	message = strings.TrimPrefix(message, "Syntax error: ")
	message, _, _ = strings.Cut(message, " expecting ")
	message = strings.NewReplacer("'<EOF>'", "the end", "<EOF>", "the end", "extraneous input", "unexpected", "mismatched input", "unexpected",
		"no viable alternative at input", "unexpected", "token recognition error at: ", "unexpected ").Replace(message)
	return sanitize.Line(strings.TrimPrefix(message, "ERROR: "), maxMessage)
}

// faults are the possible evaluation errors, by the prefix of CEL's error. The rest of CEL's text may quote a value.
var faults = []struct{ start, says string }{
	{"no such overload", "an operation does not support its value's type"},
	{"division by zero", "it divides by zero"},
	{"modulus by zero", "it divides by zero"},
	{"divide by zero", "it divides by zero"},
	{"index out of bounds", "list index out of range"},
	{"no such attribute", "undefined variable"},
}

// evalError describes an evaluation error without quoting a value.
func (p *Program) evalError(ctx context.Context, err error) error {
	message := err.Error()
	if errors.Is(err, interpreter.InterruptError{}) && context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	if strings.Contains(message, "limit exceeded") {
		return ErrCost
	}
	if _, key, ok := strings.Cut(message, "no such key: "); ok && key != "" && strings.Contains(p.source, key) { // it was named, not computed
		return errors.New(sanitize.Line("there is no key "+key, maxMessage))
	}
	for _, known := range []error{ErrUnknown, ErrSize, ErrDepth, errTooLarge, errNoJSON} {
		if errors.Is(err, known) {
			return known
		}
	}
	for _, f := range faults {
		if strings.Contains(message, f.start) {
			return errors.New(f.says)
		}
	}
	return errors.New("it cannot be evaluated for this input")
}
