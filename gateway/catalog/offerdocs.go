package catalog

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"sallyport/codegen"
	"sallyport/gateway/trust"
	"sallyport/index"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Document describes a resource, template or prompt for the index and the model.
type Document struct {
	index.Doc
	Arguments []tool.Argument // of a prompt
	MIME      string
	Heading   string // to show, where there is no description
}

// DocumentKey identifies a document.
type DocumentKey struct {
	Kind index.Kind
	ID   tool.ID
}

// offerDocuments returns documents of an upstream's prompts, templates and resources. It
// leaves out names that cannot be written into a program: those with invisible characters.
func offerDocuments(up codegen.Upstream) (docs []Document) {
	about := up.Title + " " + up.Description
	add := func(kind index.Kind, name, title, description, more string, d Document) {
		d.Heading = strings.TrimSpace(title)
		if len(docs) < maxOffers && name != "" && len(name) <= maxOfferName && sanitize.Line(name, maxOfferName) == name {
			d.Doc = index.Doc{ID: tool.ID{Upstream: up.ID, Name: name}, Kind: kind, Upstream: about + " " + string(kind), Title: title + " " + more, Description: description}
			docs = append(docs, d)
		}
	}
	for _, p := range up.Prompts {
		d := Document{Arguments: p.Arguments[:min(len(p.Arguments), maxArguments)]}
		add(index.Prompt, p.Name, p.Title, p.Description, "", d)
	}
	for _, t := range up.Templates {
		add(index.Template, t.URI, cmp.Or(t.Title, t.Name), t.Description, t.Name, Document{MIME: t.MIME})
	}
	for _, r := range up.Resources {
		add(index.Resource, r.URI, cmp.Or(r.Title, r.Name), r.Description, r.Name, Document{MIME: r.MIME})
	}
	fit := make([]*index.Doc, len(docs))
	for i := range docs {
		docs[i].truncate()
		fit[i] = &docs[i].Doc
	}
	index.Truncate(fit, maxIndexed)
	return docs
}

// truncate truncates an upstream's text, and converts a prompt's arguments to parameters.
func (d *Document) truncate() {
	d.Upstream, d.Title, d.Description = sanitize.Line(d.Upstream, 1000), strings.TrimSpace(sanitize.Line(d.Title, 256)), sanitize.Text(d.Description, 2000)
	for _, a := range d.Arguments {
		d.Params = append(d.Params, index.Param{Name: sanitize.Line(a.Name, 100), Description: sanitize.Line(a.Description, 400)})
	}
}

// maxArguments is how many arguments of a prompt are used.
const maxArguments = 20

// maxOffers bounds how many documents one upstream's resources, templates and
// prompts make; prompts come first, then templates.
const maxOffers = 500

// maxOfferName is the longest URI or name that is found, in bytes.
const maxOfferName = 300

// heldDocuments returns documents of tools that are quarantined because their definition
// changed. They have the text of the approved definition, none of the pending one.
func heldDocuments(upstream, about string, held map[string]trust.Held) (docs []index.Doc) {
	for _, name := range slices.Sorted(maps.Keys(held)) {
		h := held[name]
		if h.Reason != trust.ReasonChanged {
			continue // even its name is untrusted
		}
		var old struct {
			Name, Title, Description string
			InputSchema              json.RawMessage
		}
		_ = json.Unmarshal(h.Old, &old) // it may not have been kept
		docs = append(docs, index.FromTool(tool.Tool{
			ID: tool.ID{Upstream: upstream, Name: name}, Wire: old.Name, Title: old.Title, Description: old.Description, Input: old.InputSchema,
		}, about))
	}
	return docs
}
