package dashboard

import (
	"net/url"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// upstreamEdits edit the settings of upstreams.
type upstreamEdits struct{ editPages }

// name returns the name in the settings of the upstream in the address: that of one that is off is in the address itself.
func (d upstreamEdits) name(r *request) string {
	id := r.PathValue("id")
	for _, up := range d.service.Upstreams() {
		if up.ID == id {
			return up.Name
		}
	}
	return id
}

// begin sets the title, and returns the keys of the upstream in the settings.
func (d upstreamEdits) begin(r *request) []string {
	name := d.name(r)
	r.setTitle("Edit "+name, Crumb{"Upstreams", upstreamsPath})
	return []string{"upstreams", name}
}

// show shows the settings of an upstream as text.
func (d upstreamEdits) show(r *request) (any, error) {
	part, err := d.open(r, d.begin(r)...)
	return newEditPage(part), err
}

// change checks the text of the form; a text that was checked before is saved.
func (d upstreamEdits) change(r *request) (string, error) {
	page, _, done, err := d.draft(r, d.begin(r)...)
	if err != nil || done {
		return upstreamsPath, err
	}
	r.again = page
	return "", nil
}

// turn turns an upstream on or off.
func (d upstreamEdits) turn(r *request) (string, error) {
	what, ok := map[string]string{"enable": "Enabled: ", "disable": "Disabled: "}[r.PostFormValue("do")]
	switch {
	case d.opts.Editor == nil:
		return "", notEditable()
	case !ok:
		return "", &tool.Error{Kind: tool.Invalid, Message: "the form says neither enable nor disable"}
	}
	name := d.name(r)
	force, err := d.opts.Editor.SetDisabled(r.Context(), name, r.PostFormValue("do") == "disable")
	if err != nil {
		return "", err
	}
	r.sayForce(what+sanitize.Line(name, 100)+".", force)
	return upstreamsPath, nil
}

// editPath is the page that edits the settings of an upstream, switchPath the form that turns it on or off.
func editPath(id string) string   { return upstreamsPath + "/" + url.PathEscape(id) + "/edit" }
func switchPath(id string) string { return upstreamsPath + "/" + url.PathEscape(id) + "/switch" }
