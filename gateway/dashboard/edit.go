package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/gateway/settingsedit"
	"sallyport/internal/access"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Editor edits parts of the settings file.
type Editor interface {
	Open(ctx context.Context, keys ...string) (settingsedit.Part, error)
	Check(ctx context.Context, d settingsedit.Draft) (*settingsedit.Checked, error)
	Save(ctx context.Context, d settingsedit.Draft) (problems []settingsedit.Problem, force string, err error)
	SetDisabled(ctx context.Context, name string, disabled bool) (force string, err error)
}

// editPages edit parts of the settings.
type editPages struct{ *Dashboard }

// EditPage is the form that edits a part of the settings.
type EditPage struct {
	settingsedit.Part
	// Rows is the height of the text.
	Rows int
	// Problems say what is wrong with the text.
	Problems []settingsedit.Problem
	// Checked is the digest of a text without problems, which may be saved; "" for none.
	Checked string
	// Review is what an edit of the policy would change; nil before a check.
	Review *PolicyReview
}

// mayEdit reports whether the caller may edit the settings here.
func (d editPages) mayEdit(r *request) bool {
	caller, _ := access.CallerFrom(r.Context())
	return d.opts.Editor != nil && caller.MayConfigure()
}

// open opens a part of the settings file.
func (d editPages) open(r *request, keys ...string) (settingsedit.Part, error) {
	if d.opts.Editor == nil {
		return settingsedit.Part{}, notEditable()
	}
	return d.opts.Editor.Open(r.Context(), keys...)
}

func notEditable() error {
	return &tool.Error{Kind: tool.NotFound, Message: "this gateway has no settings file that can be edited here"}
}

// newEditPage returns the form for a part.
func newEditPage(part settingsedit.Part) *EditPage {
	return &EditPage{Part: part, Rows: min(max(strings.Count(part.Text, "\n")+3, 8), 30)}
}

// draft checks the draft of a form, or saves one that was checked before: then done is set, and the next page says so.
func (d editPages) draft(r *request, keys ...string) (page *EditPage, checked *settingsedit.Checked, done bool, err error) {
	part, err := d.open(r, keys...)
	if err != nil {
		return nil, nil, false, err
	}
	draft := settingsedit.Draft{Keys: keys, Version: sanitize.Line(r.PostFormValue("version"), 100), Text: execution.Visible(r.PostFormValue("text"))}
	part.Text, part.Version = draft.Text, draft.Version
	page = newEditPage(part)
	digest := textDigest(draft.Text)
	if r.PostFormValue("do") == "save" && r.PostFormValue("checked") == digest {
		var force string
		if page.Problems, force, err = d.opts.Editor.Save(r.Context(), draft); err == nil && page.Problems == nil {
			r.sayForce("Saved, and in force.", force)
			return nil, nil, true, nil
		}
	} else if checked, err = d.opts.Editor.Check(r.Context(), draft); err == nil {
		if page.Problems = checked.Problems; page.Problems == nil {
			page.Checked = digest
		}
	}
	if page.Problems != nil {
		r.status = tool.Invalid.Status()
	}
	return page, checked, false, err
}

// sayForce says on the next page that the settings are in force, or why they are not.
func (r *request) sayForce(text, problem string) {
	if r.say(text); problem != "" {
		line, _, _ := strings.Cut(problem, "\n")
		r.warn("Saved, but not in force: " + line)
	}
}

// textDigest identifies the text of a form.
func textDigest(text string) string {
	sum := sha256.Sum256([]byte(strings.ReplaceAll(text, "\r\n", "\n")))
	return hex.EncodeToString(sum[:12])
}
