package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"

	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/forms"
	"sallyport/gateway/workflow/lint"
	"sallyport/internal/expr"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// Workflows are what the pages need of the engine. Runs are those of the caller, or of all for an operator.
type Workflows interface {
	Runs
	RunControl
	Definitions() []workflow.Info
	Plan(ctx context.Context, workflow string, inputs json.RawMessage) (lint.Planned, error)
	Start(ctx context.Context, start workflow.Start) (workflow.Run, error)
}

// Runs are the runs of workflows.
type Runs interface {
	Run(ctx context.Context, id string) (workflow.Run, error)
	Runs(ctx context.Context, filter workflow.Filter) ([]workflow.Run, error)
	Events(ctx context.Context, id string, after int) iter.Seq2[workflow.Event, error]
}

// RunControl changes runs.
type RunControl interface {
	Cancel(ctx context.Context, id string) error
	Resume(ctx context.Context, id string) (workflow.Run, error)
	Replay(ctx context.Context, id, step string) (workflow.Run, error)
	Answer(ctx context.Context, id, step string, values json.RawMessage) (workflow.Run, error)
}

// workflowPages shows workflows and their runs.
type workflowPages struct{ *Dashboard }

// engine returns the workflow engine, or an error without one.
func (d workflowPages) engine() (Workflows, error) {
	if d.opts.Workflows == nil {
		return nil, &tool.Error{Kind: tool.NotFound, Message: "this process runs no workflows", Hint: "a sallyport serve that keeps records does"}
	}
	return d.opts.Workflows, nil
}

// visibleWorkflows returns the workflows that the user may see and start; none without an engine.
func (d workflowPages) visibleWorkflows(r *request) []workflow.Info {
	list := []workflow.Info{}
	if d.opts.Workflows == nil {
		return list
	}
	for _, one := range d.opts.Workflows.Definitions() {
		if one.Exposed || r.isOperator() {
			list = append(list, one)
		}
	}
	return list
}

func (d workflowPages) workflows(r *request) (any, error) {
	if _, err := d.engine(); err != nil {
		return nil, err
	}
	return d.visibleWorkflows(r), nil
}

// findWorkflow returns the workflow that a request names.
func (d workflowPages) findWorkflow(r *request) (workflow.Info, error) {
	if _, err := d.engine(); err != nil {
		return workflow.Info{}, err
	}
	name := r.PathValue("name")
	var names []string
	for _, one := range d.visibleWorkflows(r) {
		if one.Name == name {
			return one, nil
		}
		names = append(names, one.Name)
	}
	err := &tool.Error{Kind: tool.NotFound, Message: "there is no workflow " + sanitize.Line(name, 64)}
	if near := suggest.Of(name, names); near != "" {
		err.Hint = "did you mean " + near + "?"
	}
	return workflow.Info{}, err
}

// WorkflowPage is one workflow.
type WorkflowPage struct {
	workflow.Info
	// Fields ask for its inputs; MayStart says that who looks may start it.
	Fields   []Field
	MayStart bool
	// Plan is what a run with these inputs would do, "" where that was not asked for; Wrong is what is wrong with them.
	Plan, Wrong string
	Runs        []workflow.Run
}

// lastRuns is how many runs the page of a workflow has.
const lastRuns = 10

func (d workflowPages) workflow(r *request) (any, error) {
	info, err := d.findWorkflow(r)
	if err != nil {
		return nil, err
	}
	r.setTitle(info.Name, Crumb{"Workflows", "/ui/workflows"})
	p := WorkflowPage{Info: info, MayStart: tool.May(r.Context(), tool.ScopeWorkflow)}
	questions, err := forms.Questions(info.Inputs, info.Prompts)
	if err != nil {
		return nil, err
	}
	given := r.URL.Query()
	planned := given.Has("plan")
	p.Fields = fields(questions, given, planned)
	if planned {
		p.Plan, p.Wrong = d.plan(r, info.Name, questions, given)
	}
	p.Runs, err = d.opts.Workflows.Runs(r.Context(), workflow.Filter{Workflow: info.Name, Limit: lastRuns})
	return p, err
}

// plan says what a run would do, or what is wrong with its inputs.
func (d workflowPages) plan(r *request, name string, questions []forms.Question, given url.Values) (text, wrong string) {
	inputs, err := values(questions, given)
	if err == nil {
		var planned lint.Planned
		if planned, err = d.opts.Workflows.Plan(r.Context(), name, inputs); err == nil {
			return planned.Text(), ""
		}
	}
	e := tool.AsError(err)
	return "", strings.TrimSuffix(e.Message+"; "+e.Hint, "; ")
}

// start starts a run and redirects to its page.
func (d workflowPages) start(r *request) (string, error) {
	info, err := d.findWorkflow(r)
	if err != nil {
		return "", err
	}
	questions, err := forms.Questions(info.Inputs, info.Prompts)
	if err != nil {
		return "", err
	}
	inputs, err := values(questions, r.PostForm)
	if err != nil {
		return "", err
	}
	run, err := d.opts.Workflows.Start(r.Context(), workflow.Start{Workflow: info.Name, Inputs: inputs, Trigger: "http", Key: sanitize.Line(r.PostFormValue("once"), 64)})
	if err != nil {
		return "", err
	}
	r.say("Started " + info.Name + ".")
	return "/ui/runs/" + url.PathEscape(run.ID), nil
}

// Field is a question as a page asks it.
type Field struct {
	forms.Question
	// Key names it in the form that is sent, ID on the page.
	Key, ID string
	// Kind is that of the control: line, text, number, date, datetime-local, email, url, check, select or several. Step is of a number.
	Kind, Step string
	// Rows is the height of a text.
	Rows int
	// Text is what is filled in; Chosen are the options.
	Text    string
	Choices []Choice
	About   string
}

// Choice is an option of a field.
type Choice struct {
	Value, Title string
	Chosen       bool
}

// controls are the controls of the types of questions; others have a line.
var controls = map[string]string{
	"text": "text", "json": "text", "integer": "number", "number": "number", "boolean": "select", "date": "date", "email": "email", "uri": "url", "choice": "select", "choices": "several",
}

// fieldPrefix separates the names of fields from other form values.
const fieldPrefix = "in."

// fields are questions with what is filled in: what was given, or where nothing was, the default.
func fields(questions []forms.Question, given url.Values, again bool) []Field {
	list := make([]Field, 0, len(questions))
	for i, q := range questions {
		f := Field{Question: q, Key: fieldPrefix + q.Name, ID: fmt.Sprint("field-", i), Kind: controls[q.Type], Rows: 4}
		if f.Kind == "" {
			f.Kind = "line"
		}
		chosen := given[f.Key]
		if !again {
			chosen = defaults(q)
		}
		f.Text = strings.Join(chosen, ", ")
		for _, o := range choicesOf(q) {
			value := textOf(o.Value)
			f.Choices = append(f.Choices, Choice{value, o.Title, slices.Contains(chosen, value)})
		}
		if q.Type == "number" {
			f.Step = "any"
		}
		f.About = about(q)
		list = append(list, f)
	}
	return list
}

// choicesOf are the options of a question; those of yes and no too.
func choicesOf(q forms.Question) []forms.Option {
	if q.Type == "boolean" {
		return []forms.Option{{Value: "true", Title: "yes"}, {Value: "false", Title: "no"}}
	}
	return q.Options
}

// about describes constraints of a question that its control does not show.
func about(q forms.Question) string {
	var parts []string
	if q.Type == "json" {
		parts = append(parts, "as JSON")
	}
	if q.Type == "datetime" {
		parts = append(parts, "such as 2026-11-22T09:00:00Z")
	}
	if limits := q.Range(); limits != "" {
		parts = append(parts, limits)
	}
	if q.Pattern != "" {
		parts = append(parts, "pattern "+q.Pattern)
	}
	return strings.Join(parts, ", ")
}

// defaults returns the initial values of a question.
func defaults(q forms.Question) (texts []string) {
	if q.Default == nil {
		return nil
	}
	if list, several := q.Default.([]any); several && q.Type == "choices" {
		for _, one := range list {
			texts = append(texts, textOf(one))
		}
		return texts
	}
	if q.Type == "json" {
		text, err := expr.JSON(q.Default)
		if err != nil {
			return nil
		}
		return []string{text}
	}
	return []string{textOf(q.Default)}
}

func textOf(value any) string {
	text, err := expr.Text(value)
	if err != nil {
		return ""
	}
	return text
}

// values are what a form says, as an object of inputs. What is left empty is not in it. The error is of kind invalid, and names every field
// that is wrong.
func values(questions []forms.Question, given url.Values) (json.RawMessage, error) {
	object, wrong := map[string]any{}, []string{}
	for _, q := range questions {
		texts := given[fieldPrefix+q.Name]
		if len(texts) == 0 || len(texts) == 1 && strings.TrimSpace(texts[0]) == "" {
			if q.Required {
				wrong = append(wrong, q.Name+": it is missing")
			}
			continue
		}
		var raw any = texts[0]
		if q.Type == "choices" {
			raw = anyOf(texts)
		}
		value, problem := q.Read(raw)
		if problem != nil {
			wrong = append(wrong, problem.Error())
			continue
		}
		object[q.Name] = value
	}
	if len(wrong) > 0 {
		return nil, &tool.Error{Kind: tool.Invalid, Message: strings.Join(wrong, "; ")}
	}
	return json.Marshal(object)
}

func anyOf(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}
