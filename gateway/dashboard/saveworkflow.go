package dashboard

import (
	"context"
	"net/url"

	"sallyport/gateway/history"
	"sallyport/internal/access"
	"sallyport/internal/sanitize"
	"sallyport/internal/skill"
	"sallyport/internal/tool"
)

// Author adds workflows to the folder of the settings.
type Author interface {
	// Save writes a workflow with one step, the program of a successful execution.
	Save(ctx context.Context, name, description string, done history.Record) error
}

// mayAuthor reports whether the caller may save programs as workflows.
func (d playgroundPages) mayAuthor(r *request) bool {
	caller, _ := access.CallerFrom(r.Context())
	return d.opts.Author != nil && caller.MayConfigure()
}

// saveWorkflow saves a program as a workflow, and leads to its page. If it cannot be saved, the form is shown again.
func (d playgroundPages) saveWorkflow(r *request) (string, error) {
	if d.opts.Author == nil {
		return "", &tool.Error{Kind: tool.NotFound, Message: "this process runs no workflows", Hint: "a sallyport serve that keeps records does"}
	}
	page, err := d.page(r, r.PostFormValue("execution"))
	if err != nil {
		return "", err
	}
	if page.Run == nil || page.Run.Workflow == nil {
		return "", &tool.Error{Kind: tool.Invalid, Message: "only a program that has succeeded can be saved as a workflow"}
	}
	form := page.Run.Workflow
	form.Name, form.Description = sanitize.Line(r.PostFormValue("name"), 200), sanitize.Text(r.PostFormValue("description"), skill.MaxDescription)
	record, err := d.service.Record(r.Context(), form.Execution)
	if err == nil {
		err = d.opts.Author.Save(r.Context(), form.Name, form.Description, record)
	}
	if err != nil {
		e := tool.AsError(err)
		form.Problem, form.Hint, r.status = e.Message, e.Hint, e.Kind.Status()
		r.again = page
		return "", nil
	}
	r.say("Saved as a workflow.")
	return "/ui/workflows/" + url.PathEscape(form.Name), nil
}
