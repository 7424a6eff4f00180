package forms

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sallyport/gateway/workflow/template"
	"sallyport/internal/expr"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// maxProblems limits the problems that are reported for one answer.
const maxProblems = 50

// Next returns what to ask next, nil if the form is complete. It removes the answers to fields that do not apply any more.
// Errors are those of expressions and tools; s keeps its values.
func (f *Form) Next(ctx context.Context, env Env, s *State) (*Ask, error) {
	w, err := f.walk(ctx, env, s, nil)
	if err != nil || len(w.questions) == 0 {
		return nil, err
	}
	title, err := f.heading(ctx, env)
	return &Ask{Title: title, Fields: w.questions, Filled: w.known}, err
}

func (f *Form) heading(ctx context.Context, env Env) (string, error) {
	if f.title == nil {
		return "", nil
	}
	value, err := f.title.Eval(ctx, env.Vars)
	if err != nil {
		return "", err
	}
	text, err := expr.Text(value)
	return sanitize.Line(text, 300), err
}

// Answer stores the valid values, and returns the problems of the others in form order. Strings are converted to
// other types if unambiguous. nil leaves an optional field empty, and removes the answer to
// a required one. Unanswered optional fields are left empty once all required fields that were asked with them are answered.
func (f *Form) Answer(ctx context.Context, env Env, s *State, values map[string]any) ([]Problem, error) {
	before, err := f.walk(ctx, env, s, nil)
	if err != nil {
		return nil, err
	}
	w, err := f.walk(ctx, env, s, values)
	if err != nil {
		return nil, err
	}
	problems := append(w.problems, f.unknown(values)...)
	if len(problems) > maxProblems {
		problems = problems[:maxProblems]
	}
	if len(problems) == 0 {
		before.skipOptional(w)
	}
	return problems, nil
}

// skipOptional leaves unanswered optional fields empty if no required field that was asked with them is open.
func (w *walk) skipOptional(after *walk) {
	asked := map[string]bool{}
	for _, q := range w.questions {
		asked[q.Name] = true
	}
	open := slices.DeleteFunc(slices.Clone(after.questions), func(q Question) bool { return !asked[q.Name] })
	if slices.ContainsFunc(open, func(q Question) bool { return q.Required }) {
		return
	}
	for _, q := range open {
		w.state.setAnswer(q.Name, nil)
	}
}

// unknown returns the problems for answers to unknown fields.
func (f *Form) unknown(values map[string]any) (problems []Problem) {
	names := make([]string, len(f.fields))
	for i, field := range f.fields {
		names[i] = field.name
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if slices.Contains(names, name) || len(problems) == maxProblems {
			continue
		}
		p := Problem{Field: sanitize.Line(name, 80), Message: "there is no such field"}
		if near := suggest.Of(name, names); near != "" {
			p.Hint = fmt.Sprintf("did you mean %q?", near)
		} else {
			p.Hint = "the fields are " + sanitize.Line(join(names), 300)
		}
		problems = append(problems, p)
	}
	return problems
}

// Result returns the object of a complete form: each field that applies, null for an optional one that was left empty.
// It is an error if the form is not complete.
func (f *Form) Result(ctx context.Context, env Env, s *State) (map[string]any, error) {
	w, err := f.walk(ctx, env, s, nil)
	if err != nil {
		return nil, err
	}
	if len(w.questions) > 0 {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "field " + w.questions[0].Name + " of the form has no answer yet"}
	}
	return w.known, nil
}

// walk evaluates the fields once, in order. A field can depend on earlier ones.
type walk struct {
	ctx   context.Context //nolint:containedctx // it lives as long as one walk
	env   Env
	state *State
	given map[string]any
	// known are the fields with a value or left empty; form is the same for expressions, with null for fields that do not apply.
	known, form map[string]any
	// open says that an earlier field has no value yet.
	open      bool
	questions []Question
	problems  []Problem
}

func (f *Form) walk(ctx context.Context, env Env, s *State, given map[string]any) (*walk, error) {
	w := &walk{ctx: ctx, env: env, state: s, given: given, known: map[string]any{}, form: map[string]any{}}
	for _, field := range f.fields {
		if err := w.field(field); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// errUndecided says that an expression uses a field that has no value yet.
var errUndecided = errors.New("a field before has no value yet")

func (w *walk) field(f *field) error {
	q, applies, err := w.question(f)
	value, given := w.given[f.name]
	switch {
	case errors.Is(err, errUndecided):
		w.open = true
		if given {
			w.problem(f, "it cannot be answered yet", "the fields before it come first")
		}
		return nil
	case err != nil:
		return err
	case !applies:
		delete(w.state.Answers, f.name)
		w.form[f.name] = nil
		if given && value != nil {
			w.problem(f, "it does not apply with the current answers", "")
		}
		return nil
	}
	if given {
		w.applyAnswer(f, q, value)
	}
	return w.resolve(f, q)
}

// applyAnswer stores one answer if it is valid.
func (w *walk) applyAnswer(f *field, q *Question, value any) {
	if value == nil && q.Required {
		delete(w.state.Answers, f.name)
		return
	}
	value, problem := w.accept(f, q, value)
	if problem != nil {
		w.problems = append(w.problems, *problem)
		return
	}
	if value == nil && q.Required {
		w.problem(f, "it needs an answer", "")
		return
	}
	if !w.roomFor(f.name, value) {
		w.problem(f, "the answers are too long together", "a form has up to 1 MiB of them")
		return
	}
	w.state.setAnswer(f.name, value)
}

// roomFor reports whether an answer fits in the size limit of all answers.
func (w *walk) roomFor(name string, value any) bool {
	size := 0
	for other, answer := range w.state.Answers {
		if other != name {
			size += sizeOf(answer)
		}
	}
	return size+sizeOf(value) <= maxAnswers
}

func sizeOf(value any) int {
	switch v := value.(type) {
	case string:
		return len(v)
	case []any, map[string]any:
		text, err := expr.JSON(v)
		if err != nil {
			return maxAnswers + 1
		}
		return len(text)
	}
	return 8
}

// resolve determines the value of a field: the answer, else the value of its source. Without a value the field is asked.
func (w *walk) resolve(f *field, q *Question) error {
	if answer, ok := w.state.Answers[f.name]; ok {
		value, problem := w.recheck(f, q, answer)
		if problem == nil && (value != nil || !q.Required) {
			w.setValue(f, value)
			return nil
		}
		if problem != nil {
			q.Problem = problemText(problem, answer)
		}
		return w.ask(f, q)
	}
	if f.from != nil {
		value, err := w.fetchSource(f, "from", f.from)
		if err != nil {
			return w.deferUndecided(err)
		}
		if settled := w.useFound(f, q, value); settled {
			return nil
		}
	}
	return w.ask(f, q)
}

// useFound uses a value from the field's source if it is valid, unless a person must confirm it. It reports whether it did.
func (w *walk) useFound(f *field, q *Question, value any) bool {
	found, problem := w.accept(f, q, value)
	switch {
	case problem != nil:
		q.Problem = problemText(problem, value)
	case found == nil:
	case f.Confirm:
		q.Default = found
	default:
		w.setValue(f, found)
		return true
	}
	return false
}

func problemText(p *Problem, value any) string {
	text, err := expr.Text(value)
	if err != nil {
		text = "the value"
	}
	message := sanitize.Line(text, 80) + ": " + p.Message
	if p.Hint != "" {
		message += "; " + p.Hint
	}
	return message
}

func (w *walk) setValue(f *field, value any) { w.known[f.name], w.form[f.name] = value, value }

// ask adds the question for a field.
func (w *walk) ask(f *field, q *Question) error {
	if (f.Type == typeChoice || f.Type == typeChoices) && len(q.Options) == 0 {
		if !q.Required {
			w.setValue(f, nil)
			return nil
		}
		return &tool.Error{Kind: tool.Invalid, Message: "field " + f.name + " of the form has no options to choose from"}
	}
	if f.fallback != nil && q.Default == nil {
		if err := w.fallback(f, q); err != nil {
			return w.deferUndecided(err)
		}
	}
	w.open = true
	w.questions = append(w.questions, *q)
	return nil
}

// fallback sets the default of a question if it is valid.
func (w *walk) fallback(f *field, q *Question) error {
	value, err := w.eval(f.fallback, nil)
	if err != nil {
		return err
	}
	fallback, problem := w.accept(f, q, value)
	if problem != nil && q.Problem == "" {
		q.Problem = "the default " + problemText(problem, value)
	}
	q.Default = fallback
	return nil
}

// deferUndecided returns nil for errUndecided: the field is asked after the others.
func (w *walk) deferUndecided(err error) error {
	if errors.Is(err, errUndecided) {
		w.open = true
		return nil
	}
	return err
}

func (w *walk) problem(f *field, message, hint string) {
	w.problems = append(w.problems, Problem{f.name, message, hint})
}

// question returns the question for a field, and whether the field applies.
func (w *walk) question(f *field) (q *Question, applies bool, err error) {
	if f.when != nil {
		if value, err := w.eval(f.when, nil); err != nil || value == false {
			return nil, false, err
		}
	}
	q = &Question{
		Name: f.name, Type: f.Type, Title: sanitize.Line(f.Title, 200), Description: sanitize.Text(f.Description, 2000), Required: f.Required,
		MinLength: f.MinLength, MaxLength: f.MaxLength,
	}
	if q.Title == "" {
		q.Title = f.name
	}
	if f.Pattern != nil {
		q.Pattern = sanitize.Line(f.Pattern.Text, 500)
	}
	if q.Min, err = w.evalBound(f, f.min); err == nil {
		q.Max, err = w.evalBound(f, f.max)
	}
	if err == nil && f.options != nil {
		q.Options, err = w.options(f)
	}
	return q, true, err
}

// evalBound evaluates the minimum or maximum of a field.
func (w *walk) evalBound(f *field, b *template.Binding) (any, error) {
	if b == nil {
		return nil, nil
	}
	value, err := w.eval(b, nil)
	if err != nil || value == nil {
		return nil, err
	}
	bound, problem := convert(&Question{Name: f.name, Type: f.Type}, value)
	if problem != nil {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "min or max of field " + f.name + ": " + problem.Message, Hint: problem.Hint}
	}
	return bound, nil
}

// accept converts and checks a value; nil for none.
func (w *walk) accept(f *field, q *Question, value any) (any, *Problem) {
	value, problem := convert(q, value)
	if problem != nil {
		return nil, problem
	}
	return w.check(f, q, value)
}

// recheck is accept for a stored answer, since the form may have changed. JSON is not parsed twice.
func (w *walk) recheck(f *field, q *Question, value any) (any, *Problem) {
	if q.Type == typeJSON {
		return w.check(f, q, value)
	}
	return w.accept(f, q, value)
}

func (w *walk) check(f *field, q *Question, value any) (any, *Problem) {
	var problem *Problem
	if value != nil {
		problem = f.verify(q, value)
	}
	if problem != nil || value == nil || f.rule == nil {
		return value, problem
	}
	form := maps.Clone(w.form)
	form[f.name] = value
	holds, err := w.eval(f.rule, map[string]any{"form": form, "value": value})
	switch {
	case errors.Is(err, errUndecided) || err == nil && holds == true:
		return value, nil
	case f.Message != "":
		return nil, &Problem{Field: f.name, Message: sanitize.Line(f.Message, 500)}
	case err != nil:
		return nil, &Problem{Field: f.name, Message: "it cannot be checked: " + sanitize.Line(tool.AsError(err).Message, 500)}
	}
	return nil, &Problem{Field: f.name, Message: "it does not fit", Hint: "this must hold: " + sanitize.Line(f.Rule.Text, 300)}
}

// eval evaluates an expression of the current field.
func (w *walk) eval(b *template.Binding, more map[string]any) (any, error) {
	vars := maps.Clone(w.env.Vars)
	if vars == nil {
		vars = map[string]any{}
	}
	vars["form"] = w.form
	maps.Copy(vars, more)
	value, err := b.Eval(w.ctx, vars)
	if err != nil && w.open && b.Uses("form") && w.ctx.Err() == nil {
		return nil, errUndecided
	}
	return value, err
}
