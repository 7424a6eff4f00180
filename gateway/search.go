package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/codegen"
	"sallyport/gateway/upstream"
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

var details = []Detail{Names, Summary, Signature, Full}

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
	// Upstreams are listed for an empty query, and those that are not available always.
	Upstreams []FoundUpstream `json:"upstreams,omitempty"`
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
}

// FoundUpstream is one upstream in an answer.
type FoundUpstream struct {
	ID          string `json:"id"`
	Description string `json:"description,omitempty"`
	Tools       int    `json:"tools"`
	// Problem says why it is not available, "" if it is.
	Problem string `json:"problem,omitempty"`
}

// Search finds tools. Errors are *tool.Error, for a request that makes no sense.
func (g *Gateway) Search(ctx context.Context, s Search) (Found, error) {
	lang, err := g.normalize(&s)
	if err != nil {
		return Found{}, err
	}
	g.Settle(ctx)
	found := Found{Detail: s.Detail, Language: string(lang), Upstreams: g.foundUpstreams(s)}
	if strings.TrimSpace(s.Query) == "" && s.Upstream == "" {
		return found, nil
	}
	results, err := g.catalog.index.Search(ctx, index.Query{Text: s.Query, Upstream: s.Upstream, Limit: s.Limit})
	if err != nil {
		return Found{}, &tool.Error{Kind: tool.Internal, Message: "the search failed", Err: err}
	}
	found.Total, found.Weak, found.Unmatched, found.Suggest = results.Total, results.Weak, results.Unmatched, results.Suggest
	tools := g.catalog.current().byID
	for _, hit := range results.Hits {
		if t, ok := tools[hit.ID]; ok {
			found.Tools = append(found.Tools, describe(t, s.Detail, lang))
		}
	}
	return found, nil
}

// normalize fills in defaults and refuses what cannot be meant.
func (g *Gateway) normalize(s *Search) (codegen.Language, error) {
	interpreter, err := interpreterFor(s.Language)
	if err != nil {
		return "", err
	}
	if s.Detail == "" {
		s.Detail = Signature
	}
	if !slices.Contains(details, s.Detail) {
		return "", &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown detail %.40q", s.Detail), Hint: "use names, summary, signature or full"}
	}
	if s.Upstream != "" && !slices.Contains(g.catalog.ids(), s.Upstream) {
		id := tool.Identifier(s.Upstream)
		if !slices.Contains(g.catalog.ids(), id) {
			return "", unknown("upstream", plain.Line(s.Upstream, 80), nearest.Of(s.Upstream, g.catalog.ids()))
		}
		s.Upstream = id
	}
	if s.Limit <= 0 {
		s.Limit = map[Detail]int{Names: 50, Full: 3}[s.Detail]
	}
	if s.Limit <= 0 {
		s.Limit = 8
	}
	s.Limit = min(s.Limit, 200)
	return codegen.Language(languageName(interpreter)), nil
}

// foundUpstreams lists every upstream for an empty query, else those that matter because they are missing.
func (g *Gateway) foundUpstreams(s Search) []FoundUpstream {
	var ups []FoundUpstream
	for _, up := range g.Upstreams() {
		found := FoundUpstream{ID: up.ID, Description: plain.Line(up.Description, 120), Tools: up.State.Tools, Problem: plain.Line(up.State.Error, 200)}
		if up.State.Status == upstream.Connecting || up.State.Status == upstream.Idle {
			found.Problem = "still connecting"
		}
		everything := strings.TrimSpace(s.Query) == "" && s.Upstream == ""
		if everything || found.Problem != "" && (s.Upstream == "" || s.Upstream == up.ID) {
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
	found.Summary = firstSentence(t)
	switch detail {
	case Signature:
		found.Import, found.Text = codegen.Import(t.ID, lang), codegen.Signature(t, lang)
	case Full:
		found.Import, found.Text = codegen.Import(t.ID, lang), codegen.Describe(t, lang)
	}
	return found
}

// firstSentence is the shortest thing that tells what a tool does.
func firstSentence(t tool.Tool) string {
	text := plain.Line(t.Description, 2000)
	if text == "" {
		text = plain.Line(t.Title, 2000)
	}
	if end := strings.Index(text, ". "); end > 0 {
		text = text[:end]
	}
	return strings.TrimSuffix(plain.Line(text, summaryLength), ".")
}
