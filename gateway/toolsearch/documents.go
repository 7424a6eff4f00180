package toolsearch

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"sallyport/codegen"
	"sallyport/gateway/catalog"
	"sallyport/index"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Search also finds resources, templates and prompts of the upstreams.
// They have an index of their own: thousands of files that one server lists must
// not change how rare a word is among tools, and so how tools are ranked.

const (
	// maxOffersFound is how many of them one search shows.
	maxOffersFound = 3
)

// offerCall returns the call with which a program reads it, in both languages.
func offerCall(kind index.Kind, name string) string {
	quoted := literal(name)
	if kind == index.Prompt {
		return "prompts.get(" + quoted + ")"
	}
	return "resources.read(" + quoted + ")"
}

// literal returns a string literal of both languages, for a text without invisible characters.
func literal(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// describeOffer says how a program uses a resource, template or prompt. Lines for
// new kinds belong here.
func describeOffer(d catalog.Document, detail Detail, lang codegen.Language) FoundTool {
	found := FoundTool{ID: d.ID, Kind: d.Kind}
	if detail == Names {
		return found
	}
	found.Summary = catalog.FirstSentence(d.Description, d.Heading)
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
	if mime := sanitize.Line(d.MIME, 60); mime != "" {
		found.Summary = strings.TrimSpace(found.Summary + " (" + mime + ")")
	}
	if detail == Full {
		found.Text = fullOffer(d, found)
		found.Notes = nil
	}
	return found
}

// promptCall returns a call with the prompt's arguments, which are all strings.
func promptCall(d catalog.Document, lang codegen.Language) string {
	var args []string
	for _, a := range d.Arguments {
		name := literal(sanitize.Line(a.Name, 60))
		optional := map[bool]string{true: "", false: "?"}[a.Required]
		args = append(args, name+optional+": "+map[bool]string{true: "string", false: "str"}[lang == codegen.TypeScript])
	}
	c := "prompts.get(" + literal(d.ID.Name)
	if len(args) > 0 {
		c += ", {" + strings.Join(args, ", ") + "}"
	}
	return c + ")"
}

// fullOffer returns the full description.
func fullOffer(d catalog.Document, found FoundTool) string {
	var b strings.Builder
	b.WriteString(found.Import + "\n" + d.ID.Upstream + "." + found.Text + "\n")
	for _, text := range append([]string{codegen.QuoteLookalikes(sanitize.Line(d.Heading, catalog.SummaryLength)), codegen.QuoteLookalikes(sanitize.Text(d.Description, 2000))}, found.Notes...) {
		if text != "" {
			b.WriteString("\n" + text)
		}
	}
	for _, a := range d.Arguments {
		if about := sanitize.Line(a.Description, 300); about != "" {
			b.WriteString("\n  " + sanitize.Line(a.Name, 60) + ": " + about)
		}
	}
	return b.String()
}

// offersFor returns the resources, templates and prompts that match a query. If the query
// names a tool, they are not listed before it.
func (sr *Searcher) offersFor(ctx context.Context, s Request, lang codegen.Language, tools *Found, best float64, named bool) (found []nonTool, err error) {
	v := sr.in(ctx)
	known := v.snapshot().Offers
	if len(known) == 0 {
		return nil, nil
	}
	results, err := v.rankOffers(ctx, index.Query{Text: s.Query, Upstream: s.Upstream, Limit: maxOffersFound})
	if err != nil {
		return nil, SearchError(err)
	}
	there := offersByURI(known, s)
	for i, hit := range append(there, results.Hits...) {
		at := i < len(there)
		d, ok := known[catalog.DocumentKey{Kind: hit.Kind, ID: hit.ID}]
		if !ok || slices.ContainsFunc(found, func(o nonTool) bool { return o.id == hit.ID }) {
			continue // gone since the index was made, or already found
		}
		exact := at || s.Query == hit.ID.Name || namesTool(s.Query, hit.ID)
		o := nonTool{preferred: !named && (exact || tools.gives(hit.Cover > best+coverMargin)), relevant: exact || !results.Weak && hit.Cover >= minFunctionCover && results.Words > 1}
		o.candidate = candidate{id: hit.ID, score: hit.Score, exact: exact, offer: true, describe: func(detail Detail) FoundTool { return describeOffer(d, detail, lang) }}
		found = append(found, o)
	}
	return found, nil
}

// gives reports whether tools give way to a resource or prompt, which matches more of the query than they or not.
func (f *Found) gives(more bool) bool {
	return f.Weak || f.Total == 0 || more && f.right < leastHigh && f.needs == 0
}

// offersByURI returns the resources with the query as URI, which an index of words cannot match.
func offersByURI(known map[catalog.DocumentKey]catalog.Document, s Request) (hits []index.Hit) {
	if !strings.Contains(s.Query, ":") || strings.ContainsAny(s.Query, " \t\n") {
		return nil
	}
	for key := range known {
		head, _, open := strings.Cut(key.ID.Name, "{")
		at := key.ID.Name == s.Query || open && key.Kind == index.Template && len(head) > len("://x") && strings.HasPrefix(s.Query, head)
		if at && (s.Upstream == "" || s.Upstream == key.ID.Upstream) {
			hits = append(hits, index.Hit{ID: key.ID, Kind: key.Kind, Cover: 1})
		}
	}
	slices.SortFunc(hits, func(a, b index.Hit) int {
		return cmp.Or(cmp.Compare(len(b.ID.Name), len(a.ID.Name)), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return hits[:min(len(hits), maxOffersFound)]
}

// heldTool returns a tool that is quarantined.
func (v view) heldTool(id tool.ID) (FoundHeld, bool) {
	hold, ok := v.hold(id)
	return FoundHeld{id, hold.Reason, hold.Rejected}, ok
}

// heldNamed returns the quarantined tools that the query names, without those in
// known. The caller knows their names already.
func (sr *Searcher) heldNamed(ctx context.Context, query string, known []FoundHeld) (found []FoundHeld) {
	for id, hold := range sr.in(ctx).quarantined() {
		one := FoundHeld{id, hold.Reason, hold.Rejected}
		if namesTool(query, id) && !slices.Contains(known, one) && len(found) < maxHeldRank {
			found = append(found, one)
		}
	}
	return found
}
