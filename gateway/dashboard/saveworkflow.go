package dashboard

import (
	"context"
	"net/url"

	"sallyport/gateway/history"
	"sallyport/internal/access"
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
	form, err := d.save(r, func(run *PlaygroundRun) *SaveForm { return run.Workflow }, func(f *SaveForm) error {
		record, err := d.service.Record(r.Context(), f.Execution)
		if err != nil {
			return err
		}
		return d.opts.Author.Save(r.Context(), f.Name, f.Description, record)
	})
	if form == nil {
		return "", err
	}
	r.say("Saved as a workflow.")
	return "/ui/workflows/" + url.PathEscape(form.Name), nil
}
