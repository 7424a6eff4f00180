package workflowcmd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/workflow/forms"
	"sallyport/internal/expr"
	"sallyport/internal/tool"
)

// errAborted reports that the user left before the form was complete.
var errAborted = errors.New("the form is not complete")

// maxLine is how long a line of an answer may be, in bytes.
const maxLine = 128 << 10

// prompter asks the questions of forms on a terminal, line by line.
type prompter struct {
	// readLine reads the next line.
	readLine   func(ctx context.Context) (string, error)
	out        io.Writer
	introduced bool // introduce was called
}

// newPrompter returns an asker that reads from in and writes to out. Its reader goroutine ends with the process: a read of a terminal cannot be canceled.
func newPrompter(in io.Reader, out io.Writer) *prompter {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	return &prompter{out: out, readLine: func(ctx context.Context) (string, error) {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case line, more := <-lines:
			if !more {
				return "", errAborted
			}
			return line, nil
		}
	}}
}

// fill asks until the form is complete. If ctx or the input ends before, it submits the answers so far, unless they
// would complete the form, and returns the error of ctx or errAborted.
func (a *prompter) fill(ctx context.Context, f forms.Filler) error {
	for {
		ask, err := f.Next(ctx)
		if err != nil || ask == nil {
			return err
		}
		values, left := a.ask(ctx, ask)
		if left != nil {
			fmt.Fprintln(a.out) // end the incomplete line
		}
		if left != nil && (len(values) == 0 || !stillOpen(ask, values)) {
			return left
		}
		problems, err := f.Answer(context.WithoutCancel(ctx), values)
		if err == nil && left != nil {
			a.say("your answers are saved")
		}
		if err != nil || left != nil {
			return cmp.Or(err, left)
		}
		for _, p := range problems {
			a.say("! " + p.Error())
		}
	}
}

// stillOpen reports whether a required field has no answer.
func stillOpen(ask *forms.Ask, values map[string]any) bool {
	return slices.ContainsFunc(ask.Fields, func(q forms.Question) bool { return q.Required && values[q.Name] == nil })
}

// ask asks all questions, and returns the answers so far if the user leaves.
func (a *prompter) ask(ctx context.Context, ask *forms.Ask) (values map[string]any, err error) {
	if !a.introduced {
		a.introduced = true
		a.introduce(ask)
	}
	values = map[string]any{}
	for i := range ask.Fields {
		q := &ask.Fields[i]
		value, err := a.askQuestion(ctx, q)
		if err != nil {
			return values, err
		}
		if value != nil {
			values[q.Name] = value
		}
	}
	return values, nil
}

// introduce prints the title of the form, and the values that are already filled in.
func (a *prompter) introduce(ask *forms.Ask) {
	if ask.Title != "" {
		a.say(ask.Title)
	}
	for _, name := range slices.Sorted(maps.Keys(ask.Filled)) {
		if text, err := expr.Text(ask.Filled[name]); err == nil && text != "" {
			a.say("  " + name + ": " + cli.Cell(text, 60))
		}
	}
	a.say("? shows help, Ctrl-C leaves and saves your answers")
}

func (a *prompter) say(text string) { fmt.Fprintln(a.out, cli.Clean(text)) }

// askQuestion asks until the answer is valid; nil is no answer.
func (a *prompter) askQuestion(ctx context.Context, q *forms.Question) (any, error) {
	if q.Problem != "" {
		a.say("! " + q.Problem)
	}
	numbers := a.listOptions(q)
	for {
		fmt.Fprint(a.out, cli.Clean(prompt(q)))
		line, err := a.readAnswer(ctx, q)
		if err != nil {
			return nil, err
		}
		switch typed := strings.TrimSpace(line); {
		case typed == "?":
			a.say(helpText(q))
			continue
		case typed == "" && q.Default != nil:
			return q.Default, nil
		case typed == "-" && q.Default != nil && !q.Required:
			return "", nil
		}
		value, problem := q.Read(numbers(line))
		if problem == nil {
			return value, nil
		}
		a.say("! " + strings.TrimPrefix(problem.Error(), q.Name+": "))
	}
}

// readAnswer reads one line, or for a text all lines up to an empty one.
func (a *prompter) readAnswer(ctx context.Context, q *forms.Question) (string, error) {
	line, err := a.readLine(ctx)
	if err != nil || q.Type != "text" || line == "" || line == "?" {
		return line, err
	}
	text := line
	for {
		if line, err = a.readLine(ctx); err != nil || line == "" {
			return text, err
		}
		text += "\n" + line
	}
}

// listOptions prints the options of a choice, numbered unless one of them is a number. It returns a function that converts a typed line into options.
func (a *prompter) listOptions(q *forms.Question) func(line string) any {
	asIs := func(line string) any { return line }
	if len(q.Options) == 0 {
		return asIs
	}
	a.say(q.Title)
	numbered := !slices.ContainsFunc(q.Options, func(o forms.Option) bool { _, err := strconv.Atoi(valueText(o.Value)); return err == nil })
	for i, o := range q.Options {
		mark := valueText(o.Value)
		if numbered {
			mark = strconv.Itoa(i + 1)
		}
		text := fmt.Sprintf("  %3s", cli.Cell(mark, 40))
		if o.Title != mark {
			text += "  " + cli.Cell(o.Title, 200)
		}
		a.say(text)
	}
	if !numbered {
		return asIs
	}
	return func(line string) any { return byNumber(q, line) }
}

// byNumber replaces the numbers in a line with their options.
func byNumber(q *forms.Question, line string) any {
	chosen := []any{}
	for part := range strings.SplitSeq(line, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > len(q.Options) {
			return line
		}
		chosen = append(chosen, q.Options[n-1].Value)
	}
	if q.Type == "choice" && len(chosen) == 1 {
		return chosen[0]
	}
	return chosen
}

func valueText(v any) string {
	text, err := expr.Text(v)
	if err != nil {
		return ""
	}
	return text
}

// prompt returns the prompt for an answer.
func prompt(q *forms.Question) string {
	text := strings.TrimSuffix(q.Title, ":")
	if len(q.Options) > 0 {
		text = q.Name // the title stands above the options
	}
	if wanted := expectedText(q); wanted != "" {
		text += " (" + wanted + ")"
	}
	if q.Default != nil {
		text += " [" + cli.Cell(valueText(displayDefault(q)), 60) + "]"
	}
	if q.Type == "text" {
		return text + ":\n"
	}
	return text + ": "
}

func displayDefault(q *forms.Question) any {
	switch v := q.Default.(type) {
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case []any:
		texts := make([]string, len(v))
		for i, one := range v {
			texts[i] = valueText(one)
		}
		return strings.Join(texts, ", ")
	}
	return q.Default
}

var typeHints = map[string]string{
	"text": "an empty line ends it", "integer": "a whole number", "number": "a number", "boolean": "yes or no", "date": "such as 2026-11-22",
	"datetime": "such as 2026-11-22T09:30:00Z", "email": "an email address", "uri": "a URI", "choices": "with commas between", "json": "as JSON",
}

// expectedText describes the expected answer in a few words.
func expectedText(q *forms.Question) string {
	parts := []string{}
	for _, part := range []string{typeHints[q.Type], q.Range(), lengthHint(q)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	switch {
	case !q.Required && q.Default != nil:
		parts = append(parts, "optional: - is none")
	case !q.Required:
		parts = append(parts, "optional")
	}
	return strings.Join(parts, ", ")
}

func lengthHint(q *forms.Question) string {
	unit := " characters"
	if q.Type == "choices" {
		unit = " of them"
	}
	switch {
	case q.MinLength > 0 && q.MaxLength > 0:
		return fmt.Sprintf("%d to %d%s", q.MinLength, q.MaxLength, unit)
	case q.MinLength > 0:
		return fmt.Sprintf("at least %d%s", q.MinLength, unit)
	case q.MaxLength > 0:
		return fmt.Sprintf("at most %d%s", q.MaxLength, unit)
	}
	return ""
}

// helpText returns the help for "?".
func helpText(q *forms.Question) string {
	text := q.Name + ": " + q.Type
	if q.Description != "" {
		text += "\n" + q.Description
	}
	if q.Pattern != "" {
		text += "\npattern: " + q.Pattern
	}
	return text
}

// parseValues parses NAME=VALUE arguments. The form parses the values.
func parseValues(given []string) (map[string]any, error) {
	values := map[string]any{}
	for _, one := range given {
		name, value, ok := strings.Cut(one, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%q names no field", cli.Cell(one, 60)), Hint: "write NAME=VALUE"}
		}
		if _, twice := values[name]; twice {
			return nil, &tool.Error{Kind: tool.Invalid, Message: cli.Cell(name, 60) + " is given twice"}
		}
		values[name] = value
	}
	return values, nil
}
