package gateway

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/codegen"
	"sallyport/index"
	"sallyport/internal/nearest"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

// Detail says how much Search tells of each tool.
type Detail string

// The levels of detail.
const (
	// Names: ids only.
	Names Detail = "names"
	// Summary: the id and one line.
	Summary Detail = "summary"
	// Signature: the typed call with its result, and one line.
	Signature Detail = "signature"
	// Full: import, signature, every parameter, the whole description.
	Full Detail = "full"
)

// Search asks for tools.
type Search struct {
	// Query is what the model typed; "" lists the upstreams, or the tools of Upstream.
	Query string
	// Detail is Signature if empty.
	Detail Detail
	// Upstream restricts the search to one upstream.
	Upstream string
	// Limit is the most tools that come back; 0 is 8, or 50 for names, 3 for full.
	Limit int
	// Language is that of signatures and imports; "" is python.
	Language string
}

// Found is what a search found.
type Found struct {
	Tools []FoundTool `json:"tools"`
	// Total is how many tools matched at all.
	Total int `json:"total"`
	// Weak says that none of them fits well.
	Weak bool `json:"weak,omitempty"`
	// Unmatched are words of the query that no tool has, Suggest what may have been meant.
	Unmatched []string `json:"unmatched,omitempty"`
	Suggest   []string `json:"suggest,omitempty"`
	// Listing says that nothing in particular was asked for: it is the tools of
	// Upstream that are listed, or the upstreams.
	Listing bool `json:"listing,omitempty"`
	// Upstream is the only one that was searched, "" if all were.
	Upstream string `json:"upstream,omitempty"`
	// Upstreams are all where they are listed, else those of the searched that are not available.
	Upstreams []FoundUpstream `json:"upstreams,omitempty"`
	// Problem says, where upstreams are listed, why the settings' file as it is
	// now is not in force; "" if it is.
	Problem string `json:"problem,omitempty"`
	// Offers says in one line how a program reaches the resources and prompts of
	// Upstream, where its tools are listed; "" if it has none.
	Offers string `json:"offers,omitempty"`
	// Detail and Language are those that Tools were described in.
	Detail   Detail `json:"detail"`
	Language string `json:"language"`
}

// FoundTool is one tool that was found, described as asked for.
type FoundTool struct {
	ID      tool.ID `json:"id"`
	Summary string  `json:"summary,omitempty"`
	Import  string  `json:"import,omitempty"`
	// Text is the signature, or for Full all there is to tell.
	Text string `json:"text,omitempty"`
	// Destructive says that the upstream itself calls the tool destructive.
	Destructive bool `json:"destructive,omitempty"`

	parts codegen.Description // of Text, for Full
}

// FoundUpstream is one upstream in an answer.
type FoundUpstream struct {
	ID          string `json:"id"`
	Description string `json:"description,omitempty"`
	// Tools is how many are known, also of an upstream that was lost.
	Tools int `json:"tools"`
	// Problem says why it is not available, "" if it is.
	Problem string `json:"problem,omitempty"`
}

// Search finds tools. Errors are *tool.Error, for a request that makes no sense.
func (g *Gateway) Search(ctx context.Context, s Search) (Found, error) {
	lang, err := g.normalize(&s)
	if err != nil {
		return Found{}, err
	}
	g.settle(ctx, s.Upstream)
	return g.search(ctx, s, lang)
}

// search is Search of what is known now.
func (g *Gateway) search(ctx context.Context, s Search, lang codegen.Language) (Found, error) {
	found := Found{Detail: s.Detail, Language: string(lang), Listing: s.Query == "", Upstream: s.Upstream}
	found.Upstreams = g.foundUpstreams(s.Upstream, found.listsUpstreams())
	if found.listsUpstreams() {
		found.Problem = g.Settings().summary()
		return found, nil
	}
	if s.Upstream == ownID && found.Listing {
		listFunctions(&found, lang)
		return found, nil
	}
	if s.Upstream == ownID {
		return found, g.searchFunctions(ctx, s, lang, &found)
	}
	if m, err := g.catalog.member(s.Upstream); err == nil && found.Listing {
		found.Offers = m.offers(lang)
	}
	results, err := g.catalog.index.Search(ctx, index.Query{Text: s.Query, Upstream: s.Upstream, Limit: s.Limit})
	if err != nil {
		return Found{}, searchError(err)
	}
	found.Total, found.Weak, found.Unmatched, found.Suggest = results.Total, results.Weak, results.Unmatched, results.Suggest
	for _, hit := range results.Hits {
		if e, ok := g.catalog.known(hit.ID); ok {
			found.Tools = append(found.Tools, describe(g.catalog.withObserved(e), s.Detail, lang))
		} else { // gone since the index was made
			found.Total--
		}
	}
	if s.Upstream == "" {
		best := 0.0
		for _, hit := range results.Hits {
			best = max(best, hit.Cover)
		}
		err = g.addFunctions(ctx, s, lang, &found, best)
	}
	return found, err
}

func searchError(err error) error {
	if errors.Is(err, index.ErrClosed) {
		return closedError()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return tool.AsError(err)
	}
	return &tool.Error{Kind: tool.Internal, Message: "the search failed", Err: err}
}

// normalize fills in defaults and refuses what cannot be meant.
func (g *Gateway) normalize(s *Search) (codegen.Language, error) {
	interpreter, err := interpreterFor(s.Language)
	if err != nil {
		return "", err
	}
	s.Query, s.Upstream = strings.TrimSpace(s.Query), shortName(s.Upstream)
	if s.Detail == "" {
		s.Detail = Signature
	}
	if !slices.Contains([]Detail{Names, Summary, Signature, Full}, s.Detail) {
		return "", notOneOf("detail", string(s.Detail), "use names, summary, signature or full")
	}
	if s.Upstream, err = g.upstreamID(s.Upstream); err != nil {
		return "", err
	}
	if s.Limit <= 0 {
		s.Limit = defaultLimit(s.Detail)
	}
	s.Limit = min(s.Limit, maxLimit)
	return codegen.Language(languageName(interpreter)), nil
}

// notOneOf is the error for a word that is none of those that may stand there.
func notOneOf(what, word, hint string) *tool.Error {
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown %s %q", what, plain.Line(word, 40)), Hint: hint}
}

// maxNameAsked is the longest name that is looked for, in bytes; no tool has one that long.
const maxNameAsked = 1 << 10

// shortName is a name as it came in a request, cut where nothing can be called so.
func shortName(name string) string {
	return strings.TrimSpace(name[:min(len(name), maxNameAsked)])
}

// upstreamID finds an upstream by its id or by its name in the settings.
func (g *Gateway) upstreamID(name string) (string, error) {
	ids := g.catalog.roster.Load().ids()
	if name == ownID {
		return ownID, nil
	}
	for _, id := range []string{name, tool.Identifier(name)} {
		if name == "" || slices.Contains(ids, id) {
			return id, nil
		}
	}
	err := unknown("upstream", name, nearest.Of(name, ids))
	if nearest.Of(name, ids) == "" {
		err.Hint = plain.Line("there are: "+strings.Join(ids, ", "), 400)
	}
	return "", err
}

// maxLimit is the most hits of one search.
const maxLimit = 200

func defaultLimit(d Detail) int {
	switch d {
	case Names:
		return 50
	case Full:
		return 3
	}
	return 8
}

// foundUpstreams lists every upstream, or those that were to be searched and are not available.
func (g *Gateway) foundUpstreams(only string, all bool) []FoundUpstream {
	var ups []FoundUpstream
	for _, up := range g.Upstreams() {
		found := FoundUpstream{ID: up.ID, Description: plain.Line(up.Description, 120), Tools: up.State.Tools, Problem: up.problem()}
		if all || found.Problem != "" && (only == "" || only == up.ID) {
			ups = append(ups, found)
		}
	}
	return ups
}

// summaryLength is how long the one line about a tool may be, in characters.
const summaryLength = 120

func describe(t tool.Tool, detail Detail, lang codegen.Language) FoundTool {
	found := FoundTool{ID: t.ID, Destructive: t.Annotations.Destructive != nil && *t.Annotations.Destructive}
	if detail == Names {
		return found
	}
	found.Summary = summary(t)
	switch detail {
	case Signature:
		found.Import, found.Text = codegen.Import(t.ID, lang), codegen.Signature(t, lang)
	case Full:
		found.Import, found.parts = codegen.Import(t.ID, lang), codegen.Describe(t, lang)
		found.Text = found.parts.Text
	}
	return found
}

// sentenceEnd is a full stop before what looks like a new sentence: not one in "e.g. files".
var sentenceEnd = regexp.MustCompile(`[^. ]{2,}\)?(\.) +[^a-z ]`)

// summary is the first sentence of what a tool says of itself.
func summary(t tool.Tool) string {
	text := plain.Line(t.Description, 2000)
	if text == "" {
		text = plain.Line(t.Title, 2000)
	}
	if end := sentenceEnd.FindStringSubmatchIndex(text); end != nil {
		text = text[:end[2]]
	}
	return strings.TrimSuffix(plain.Line(text, summaryLength), ".")
}
