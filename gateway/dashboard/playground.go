package dashboard

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/skills"
	"sallyport/gateway/workspaces"
	"sallyport/internal/sanitize"
	"sallyport/internal/skill"
	"sallyport/internal/tool"
)

// Programs runs programs and saves them as skills.
type Programs interface {
	Execute(ctx context.Context, program execution.Program) (execution.Result, error)
	SaveSkill(ctx context.Context, draft skills.SkillDraft) (string, error)
	// ListWorkspaces returns the workspaces of the caller.
	ListWorkspaces(ctx context.Context) ([]workspaces.WorkspaceInfo, error)
}

const playgroundPath = "/ui/playground"

// playgroundPages runs programs that are typed on a page.
type playgroundPages struct{ *Dashboard }

// PlaygroundPage is the form for a program, with the last one that was run.
type PlaygroundPage struct {
	Code, Language, Environment, Workspace string
	// Languages, Environments and Workspaces can be chosen; without environments there is only the default one.
	Languages, Environments, Workspaces []string
	// Completions and Check are where the editor asks; "" for a text field only.
	Completions, Check string
	// Run is the program that was run, nil before the first. Every is how often it is updated, in seconds; 0 once it has ended.
	Run   *PlaygroundRun
	Every int
}

// PlaygroundRun is a program that was run: Live until it has ended, then Answer.
type PlaygroundRun struct {
	ID, Path string
	Live     *LivePage
	// Ended says that it has ended. Before that, and without Live, it waits for its environment or an upstream.
	Ended  bool
	Status string
	Took   time.Duration
	// Answer is what a model reads of it, Tokens the number of its tokens.
	Answer string
	Tokens int
	// Problem says why it was not run, Hint how to fix that.
	Problem, Hint string
	Chart         CallChart
	Approvals     []approvals.Approval
	// Held says that it can go on once an approval is answered.
	Held bool
	// Skill saves it as a skill, Workflow as a workflow; nil if it cannot be saved.
	Skill, Workflow *SaveForm
}

// SaveForm asks for the name and the description of what a program is saved as.
type SaveForm struct {
	// Kind is skill or workflow, Example a name of one, and Note a remark on it, "" for none.
	Kind, Example, Note          string
	Execution, Name, Description string
	// Problem says why it was not saved, Hint how to fix that.
	Problem, Hint string
}

// show shows the form, with the program of the execution in the query.
func (d playgroundPages) show(r *request) (any, error) {
	return d.page(r, r.URL.Query().Get("execution"))
}

func (d playgroundPages) page(r *request, id string) (PlaygroundPage, error) {
	p := PlaygroundPage{Languages: []string{"python", "typescript"}, Environments: d.environments()}
	if d.opts.Completions != nil && d.opts.Drafts != nil {
		p.Completions, p.Check = completionsPath, checkPath
	}
	if list, err := d.service.ListWorkspaces(r.Context()); err == nil {
		for _, w := range list {
			p.Workspaces = append(p.Workspaces, w.Name)
		}
	}
	p.Workspaces, p.Environments = visibleNames(p.Workspaces), visibleNames(p.Environments)
	if id == "" {
		return p, nil
	}
	a := d.attempts.find(tool.Principal(r.Context()), id)
	if a != nil {
		p.Code, p.Language, p.Environment, p.Workspace = a.program.Code, a.program.Language, a.program.Environment, a.program.Workspace
	}
	run := &PlaygroundRun{ID: id, Path: executionPath(id)}
	p.Run, p.Every = run, 1
	if live, ok := d.service.LiveOf(r.Context(), id); ok && live.Principal == tool.Principal(r.Context()) {
		p.adopt(live.Code, live.Language, live.Environment, live.Workspace)
		page, err := d.showLive(r, live)
		run.Live = page.Live
		r.setTitle("Playground")
		return p, err
	}
	if a != nil && !a.over() {
		return p, nil
	}
	run.Ended, p.Every = true, 0
	return p, d.ended(r, &p, a)
}

// visibleNames returns the names that can be shown as they are.
func visibleNames(all []string) []string {
	return slices.DeleteFunc(all, func(name string) bool { return sanitize.Line(name, 80) != name })
}

// adopt fills in a program that the form does not have.
func (p *PlaygroundPage) adopt(code, language, environment, workspace string) {
	if p.Code == "" {
		p.Code, p.Language, p.Environment, p.Workspace = sanitize.Head(execution.Visible(code), maxProgram), language, environment, workspace
	}
}

// ended adds the result of a program.
func (d playgroundPages) ended(r *request, p *PlaygroundPage, a *attempt) error {
	run := p.Run
	if a.refused() {
		e := tool.AsError(a.err)
		run.Problem, run.Hint, r.status = e.Message, e.Hint, e.Kind.Status()
		return nil
	}
	record, err := d.service.Record(r.Context(), run.ID)
	if err == nil && record.Principal != tool.Principal(r.Context()) { // its code is not brought to others, who would run it with their own rights
		err = &tool.Error{Kind: tool.NotFound, Message: "another principal ran it", Hint: "see it under Executions"}
	}
	if err != nil {
		return err
	}
	p.adopt(record.Code, record.Language, record.Environment, record.Workspace)
	run.Status, run.Took, run.Tokens, run.Chart = string(record.Status), record.Duration, record.Tokens, callChart(record)
	run.Held = record.Status == execution.Held
	if record.Status == "ok" {
		run.Skill = &SaveForm{Kind: "skill", Example: "count-open-orders", Execution: run.ID}
	}
	if record.Status == "ok" && d.mayAuthor(r) {
		run.Workflow = &SaveForm{Kind: "workflow", Example: "count_open_orders", Note: "A new file in the folder of workflows has the program in one step, for operators to run.", Execution: run.ID}
	}
	if run.Answer = keptAnswer(record); a != nil {
		run.Answer = a.answer
	}
	run.Approvals, err = d.approvalsOf(r, run.ID)
	return err
}

// keptAnswer is what the record of an execution has of its answer.
func keptAnswer(r history.Record) string {
	var parts []string
	if r.Output != nil {
		parts = append(parts, r.Output.Stdout, r.Output.Stderr, r.Output.Value)
	}
	parts = slices.DeleteFunc(append(parts, r.Error), func(part string) bool { return part == "" })
	return strings.Join(parts, "\n")
}

// environments returns the names of the environments in the settings; nil if there is no choice.
func (d playgroundPages) environments() []string {
	if d.opts.Environments == nil {
		return nil
	}
	all := d.opts.Environments()
	delete(all, "default")
	return slices.Sorted(maps.Keys(all))
}

// firstWait is how long the answer to the form waits for the program's end: without scripts, most need no reload.
const firstWait = 2 * time.Second

// run runs the program of the form in the background, and leads to the page that shows it.
func (d playgroundPages) run(r *request) (string, error) {
	form := func(name string) string { return sanitize.Line(r.PostFormValue(name), 100) }
	a := &attempt{principal: tool.Principal(r.Context()), done: make(chan struct{}), program: execution.Program{
		ID: execution.NewID(), Code: execution.Visible(r.PostFormValue("code")), Language: form("language"), Environment: form("environment"), Workspace: form("workspace"), Resume: form("resume"),
	}}
	if len(a.program.Code) > maxProgram {
		return "", &tool.Error{Kind: tool.Limit, Message: "the program has more than " + size(maxProgram), Hint: "put data into a file of the workspace"}
	}
	d.attempts.add(a)
	ctx := tool.Detach(tool.WithClient(r.Context(), clientName)) // it continues when the page is left
	go func() {
		defer close(a.done)
		result, err := d.service.Execute(ctx, a.program)
		a.answer, a.err = sanitize.Text(result.Text(), maxLong), err
	}()
	timer := time.NewTimer(firstWait)
	defer timer.Stop()
	select {
	case <-a.done:
	case <-timer.C:
	case <-r.Context().Done():
	}
	return playgroundAt(a.program.ID), nil
}

// playgroundAt is the address of the page with a program that was run.
func playgroundAt(id string) string {
	return playgroundPath + "?" + url.Values{"execution": {id}}.Encode() + "#run"
}

// saveSkill saves a program as a skill, and leads to its page. If it cannot be saved, the form is shown again.
func (d playgroundPages) saveSkill(r *request) (string, error) {
	form, err := d.save(r, func(run *PlaygroundRun) *SaveForm { return run.Skill }, func(f *SaveForm) error {
		_, err := d.service.SaveSkill(tool.WithClient(r.Context(), clientName), skills.SkillDraft{Name: f.Name, Description: f.Description, From: f.Execution})
		return err
	})
	if form == nil {
		return "", err
	}
	name, err := skill.Name(form.Name)
	r.say("Saved as a skill.")
	return "/ui/skills/" + url.PathEscape(cmp.Or(name, form.Name)), err
}

// save saves the program of a form, by do. It returns the form that was sent, nil if the program was not saved: then the form is shown
// again with the reason, or there is an error.
func (d playgroundPages) save(r *request, of func(*PlaygroundRun) *SaveForm, do func(*SaveForm) error) (*SaveForm, error) {
	page, err := d.page(r, r.PostFormValue("execution"))
	if err != nil {
		return nil, err
	}
	if page.Run == nil || of(page.Run) == nil {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "only a program that has succeeded can be saved"}
	}
	form := of(page.Run)
	form.Name, form.Description = sanitize.Line(r.PostFormValue("name"), 200), sanitize.Text(r.PostFormValue("description"), skill.MaxDescription)
	if err := do(form); err != nil {
		e := tool.AsError(err)
		form.Problem, form.Hint, r.status = e.Message, e.Hint, e.Kind.Status()
		r.again = page
		return nil, nil //nolint:nilnil // the form is shown again
	}
	return form, nil
}
