package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"sallyport/codegen"
	"sallyport/gateway/trust"
	"sallyport/index"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

// Resources, templates and prompts of the upstreams are found by search as well.
// They have an index of their own: thousands of files that one server lists must
// not change how rare a word is among tools, and so how tools are ranked.

const (
	// maxOffers bounds how many documents one upstream's resources, templates and
	// prompts make; prompts come first, then templates.
	maxOffers = 500
	// maxOfferName is the longest URI or name that is found, in bytes.
	maxOfferName = 300
	// offersFound is how many of them one search shows.
	offersFound = 3
)

// document is what the index is told of something that is no tool, and what a model is.
type document struct {
	index.Doc
	arguments []tool.Argument // of a prompt
	mime      string
	title     string // to show, where there is no description
}

// documentKey is what identifies a document.
type documentKey struct {
	kind index.Kind
	id   tool.ID
}

// offerDocuments are what an upstream offers besides tools. What cannot be written
// into a program as it is has none: a name with characters that do not show.
func offerDocuments(up codegen.Upstream) (docs []document) {
	about := up.Title + " " + up.Description
	add := func(kind index.Kind, name, title, description, more string, d document) {
		d.title = strings.TrimSpace(title)
		if len(docs) < maxOffers && name != "" && len(name) <= maxOfferName && plain.Line(name, maxOfferName) == name {
			d.Doc = index.Doc{ID: tool.ID{Upstream: up.ID, Name: name}, Kind: kind, Upstream: about + " " + string(kind), Title: title + " " + more, Description: description}
			docs = append(docs, d)
		}
	}
	for _, p := range up.Prompts {
		d := document{arguments: p.Arguments[:min(len(p.Arguments), maxArguments)]}
		add(index.Prompt, p.Name, p.Title, p.Description, "", d)
	}
	for _, t := range up.Templates {
		add(index.Template, t.URI, cmp.Or(t.Title, t.Name), t.Description, t.Name, document{mime: t.MIME})
	}
	for _, r := range up.Resources {
		add(index.Resource, r.URI, cmp.Or(r.Title, r.Name), r.Description, r.Name, document{mime: r.MIME})
	}
	fit := make([]*index.Doc, len(docs))
	for i := range docs {
		docs[i].bound()
		fit[i] = &docs[i].Doc
	}
	index.Fit(fit, maxIndexed)
	return docs
}

// maxArguments is how many arguments of a prompt are known.
const maxArguments = 20

// bound cuts what an upstream says, and makes parameters of a prompt's arguments.
func (d *document) bound() {
	d.Upstream, d.Title, d.Description = plain.Line(d.Upstream, 1000), strings.TrimSpace(plain.Line(d.Title, 256)), plain.Text(d.Description, 2000)
	for _, a := range d.arguments {
		d.Params = append(d.Params, index.Param{Name: plain.Line(a.Name, 100), Description: plain.Line(a.Description, 400)})
	}
}

// offerCall is how a program reaches it, in both languages.
func offerCall(kind index.Kind, name string) string {
	quoted := literal(name)
	if kind == index.Prompt {
		return "prompts.get(" + quoted + ")"
	}
	return "resources.read(" + quoted + ")"
}

// literal is a string literal of both languages, of a text without characters that do not show.
func literal(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// describeOffer says how a program uses what is no tool. Whatever kinds there
// will be besides these get their lines here.
func describeOffer(d document, detail Detail, lang codegen.Language) FoundTool {
	found := FoundTool{ID: d.ID, Kind: d.Kind}
	if detail == Names {
		return found
	}
	found.Summary = firstSentence(d.Description, d.title)
	if detail == Summary {
		return found
	}
	module, c := "resources", offerCall(d.Kind, d.ID.Name)
	if d.Kind == index.Prompt {
		module, c = "prompts", promptCall(d, lang)
	}
	found.Import = codegen.Import(tool.ID{Upstream: d.ID.Upstream, Name: module}, lang)
	result := map[bool]string{true: " -> {messages: [...]}", false: " -> str | Blob"}[d.Kind == index.Prompt]
	if lang == codegen.TypeScript {
		result = map[bool]string{true: ": Promise<{messages: [...]}>", false: ": Promise<string | Blob>"}[d.Kind == index.Prompt]
	}
	found.Text = c + result
	if d.Kind == index.Template {
		found.Notes = []string{"fill in {...} of the URI first"}
	}
	if mime := plain.Line(d.mime, 60); mime != "" {
		found.Summary = strings.TrimSpace(found.Summary + " (" + mime + ")")
	}
	if detail == Full {
		found.Text = fullOffer(d, found)
		found.Notes = nil
	}
	return found
}

// promptCall is a call with the prompt's arguments, which all are strings.
func promptCall(d document, lang codegen.Language) string {
	var args []string
	for _, a := range d.arguments {
		name := literal(plain.Line(a.Name, 60))
		optional := map[bool]string{true: "", false: "?"}[a.Required]
		args = append(args, name+optional+": "+map[bool]string{true: "string", false: "str"}[lang == codegen.TypeScript])
	}
	c := "prompts.get(" + literal(d.ID.Name)
	if len(args) > 0 {
		c += ", {" + strings.Join(args, ", ") + "}"
	}
	return c + ")"
}

// fullOffer is all there is to tell.
func fullOffer(d document, found FoundTool) string {
	var b strings.Builder
	b.WriteString(found.Import + "\n" + d.ID.Upstream + "." + found.Text + "\n")
	for _, text := range append([]string{codegen.Quoted(plain.Line(d.title, summaryLength)), codegen.Quoted(plain.Text(d.Description, 2000))}, found.Notes...) {
		if text != "" {
			b.WriteString("\n" + text)
		}
	}
	for _, a := range d.arguments {
		if about := plain.Line(a.Description, 300); about != "" {
			b.WriteString("\n  " + plain.Line(a.Name, 60) + ": " + about)
		}
	}
	return b.String()
}

// offersFor are the resources, templates and prompts that may answer a query. Where
// it names a tool they do not stand before that, whatever they are called.
func (g *Gateway) offersFor(ctx context.Context, s Search, lang codegen.Language, weak bool, best float64, named bool) (found []other, err error) {
	known := g.catalog.current().offers
	if len(known) == 0 {
		return nil, nil
	}
	results, err := g.catalog.offered.Search(ctx, index.Query{Text: s.Query, Upstream: s.Upstream, Limit: offersFound})
	if err != nil {
		return nil, searchError(err)
	}
	there := offersAt(known, s)
	for i, hit := range append(there, results.Hits...) {
		at := i < len(there)
		d, ok := known[documentKey{hit.Kind, hit.ID}]
		if !ok || slices.ContainsFunc(found, func(o other) bool { return o.id == hit.ID }) {
			continue // gone since the index was made, or told of already
		}
		exact := at || s.Query == hit.ID.Name || names(s.Query, hit.ID)
		o := other{sought: !named && (exact || weak || hit.Cover > best+surelyMore), fits: exact || !results.Weak && hit.Cover >= functionFits && results.Words > 1}
		o.candidate = candidate{id: hit.ID, score: hit.Score, exact: exact, tell: func(detail Detail) FoundTool { return describeOffer(d, detail, lang) }}
		found = append(found, o)
	}
	return found, nil
}

// offersAt are the resources at the URI that a query is: an index of words takes it for a path among words.
func offersAt(known map[documentKey]document, s Search) (hits []index.Hit) {
	if !strings.Contains(s.Query, ":") || strings.ContainsAny(s.Query, " \t\n") {
		return nil
	}
	for key := range known {
		head, _, open := strings.Cut(key.id.Name, "{")
		at := key.id.Name == s.Query || open && key.kind == index.Template && len(head) > len("://x") && strings.HasPrefix(s.Query, head)
		if at && (s.Upstream == "" || s.Upstream == key.id.Upstream) {
			hits = append(hits, index.Hit{ID: key.id, Kind: key.kind, Cover: 1})
		}
	}
	slices.SortFunc(hits, func(a, b index.Hit) int {
		return cmp.Or(cmp.Compare(len(b.ID.Name), len(a.ID.Name)), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return hits[:min(len(hits), offersFound)]
}

// heldDocuments let a query find what is quarantined because its definition
// changed, by the definition that was approved: of the one that waits nothing is read.
func heldDocuments(upstream, about string, held map[string]trust.Held) (docs []index.Doc) {
	for _, name := range slices.Sorted(maps.Keys(held)) {
		h := held[name]
		if h.Reason != trust.ReasonChanged {
			continue // even its name is the upstream's word
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

// heldTool returns a tool that is quarantined.
func (c *catalog) heldTool(id tool.ID) (FoundHeld, bool) {
	m, err := c.member(id.Upstream)
	if err != nil {
		return FoundHeld{}, false
	}
	h, ok := m.view.Load().held[id.Name]
	return FoundHeld{ID: id, Reason: h.Reason}, ok
}

// heldNamed are those that the query names, so that their names are no news to
// whoever asked, besides those that are known.
func (c *catalog) heldNamed(query string, known []FoundHeld) (found []FoundHeld) {
	for _, m := range c.roster.Load().members {
		held := m.view.Load().held
		for _, name := range slices.Sorted(maps.Keys(held)) {
			one := FoundHeld{ID: tool.ID{Upstream: m.id, Name: name}, Reason: held[name].Reason}
			if names(query, one.ID) && !slices.Contains(known, one) && len(found) < maxHeldRank {
				found = append(found, one)
			}
		}
	}
	return found
}
