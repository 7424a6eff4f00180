package toolsearch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"sallyport/codegen"
	"sallyport/gateway/catalog"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/index"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Detail is how much Search shows of each tool.
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
	// brief is a shorter Signature, for hits other than the best. It cannot be requested.
	brief Detail = "brief"
)

func (d Detail) valid() bool {
	return slices.Contains([]Detail{Names, Summary, Signature, Full}, d)
}

// Request is a search request.
type Request struct {
	// Query is what the model typed; "" lists the upstreams, or the tools of Upstream.
	Query string
	// Detail is Signature if empty. It is what the best hits get; see Budget.
	Detail Detail
	// Upstream restricts the search to one upstream.
	Upstream string
	// Limit is the most tools that come back, at most 200; 0 is as many as the budget allows.
	Limit int
	// Budget is how many tokens (o200k) the text of the answer may have: it decides
	// how many tools come back and how much is shown of each. The best hit is always
	// shown in full. 0 is 400, and 200 more for each further thing that the query asks for.
	Budget int
	// Language is that of signatures and imports; "" is python.
	Language string
	// Shown has the signatures of earlier answers to the same reader, and gets those of this one. Only the best hit, and
	// one that the query names, repeats its signature. nil repeats all.
	Shown *Shown
}

// Found is the result of a search.
type Found struct {
	Tools []FoundTool `json:"tools"`
	// Total is how many tools matched.
	Total int `json:"total"`
	// Confidence says how sure it is that one of the first tools is right; "" for a list.
	Confidence Confidence `json:"confidence,omitempty"`
	// Weak says that none of them matches well.
	Weak bool `json:"weak,omitempty"`
	// Unmatched are words of the query that no tool has, Suggest similar words,
	// Likely the upstreams that match where no tool matches well.
	Unmatched []string `json:"unmatched,omitempty"`
	Suggest   []string `json:"suggest,omitempty"`
	Likely    []string `json:"likely_upstreams,omitempty"`
	// Quarantined match, but must not be called.
	Quarantined []FoundHeld `json:"quarantined,omitempty"`
	// Listing says that the query was empty: the tools of Upstream are listed, or
	// the upstreams.
	Listing bool `json:"listing,omitempty"`
	// Upstream is the only one that was searched, "" if all were; Unknown is an
	// upstream that the query names and that does not exist.
	Upstream string `json:"upstream,omitempty"`
	Unknown  string `json:"unknown_upstream,omitempty"`
	// Upstreams are all where they are listed, else the searched ones that are not available.
	Upstreams []FoundUpstream `json:"upstreams,omitempty"`
	// Problem says, where upstreams are listed, why the current settings file is not
	// in force; "" if it is.
	Problem string `json:"problem,omitempty"`
	// More is how many upstreams were left out of the list for lack of room.
	More int `json:"more_upstreams,omitempty"`
	// Offers says in one line how a program reaches the resources and prompts of
	// Upstream, where its tools are listed; "" if it has none.
	Offers string `json:"offers,omitempty"`
	// Detail and Language are those that Tools were described in.
	Detail   Detail `json:"detail"`
	Language string `json:"language"`

	settled bool               // the first tools are likely enough: how many more match is not told
	needs   int                // parts of the query that a tool fits, if several, else 0
	right   float64            // the estimated probability that one of the first tools is right
	cost    int                // of Text, in tokens
	words   map[string]float64 // words of the query with their weights
}

// FoundTool is one tool that was found, or something else that a program can
// use, in as much detail as there was room for.
type FoundTool struct {
	// ID identifies it for search and describe. Its name is the URI of a resource, and
	// the upstream's name of a prompt.
	ID tool.ID `json:"id"`
	// Kind is "" for a tool.
	Kind    index.Kind `json:"kind,omitempty"`
	Summary string     `json:"summary,omitempty"`
	Import  string     `json:"import,omitempty"`
	// Text is the signature, or the whole description for Full.
	Text string `json:"text,omitempty"`
	// Notes are facts that callers need and the signature does not show.
	Notes []string `json:"notes,omitempty"`
	// Destructive says that the upstream itself calls the tool destructive.
	Destructive bool `json:"destructive,omitempty"`
	// Policy is "ask" where every call needs approval, "deny" where all calls are refused.
	Policy string `json:"policy,omitempty"`
	// Hints are, for Full, what the upstream says of the tool: "read-only",
	// "destructive", "idempotent", "open-world".
	Hints []string `json:"hints,omitempty"`
	// Shown is the detail that there was room for, if less than requested.
	Shown Detail `json:"shown,omitempty"`
	// Repeated says that an earlier answer has the signature, so that the text of this one leaves it out.
	Repeated bool `json:"-"`

	parts codegen.Description // of Text, for Full
}

// FoundHeld is a tool that is quarantined, without its quarantined definition, or that the policy refuses.
type FoundHeld struct {
	ID     tool.ID `json:"id"`
	Reason string  `json:"reason"` // one of trust's, or "denied"
	// Rejected says that an operator rejected the definition, and why.
	Rejected string `json:"rejected,omitempty"`
}

// FoundUpstream is one upstream in an answer.
type FoundUpstream struct {
	ID          string `json:"id"`
	Description string `json:"description,omitempty"`
	// Tools is how many are known, also of a disconnected upstream.
	Tools int `json:"tools"`
	// Held is how many more are quarantined.
	Held int `json:"quarantined,omitempty"`
	// Problem says why it is not available, "" if it is.
	Problem string `json:"problem,omitempty"`
}

// Search finds tools. Errors are *tool.Error, for an invalid request.
func (sr *Searcher) Search(ctx context.Context, s Request) (Found, error) {
	lang, err := sr.normalize(ctx, &s)
	if err != nil {
		return Found{}, err
	}
	sr.opts.Catalog.Await(ctx, s.Upstream)
	catalog.ConnectExchanges(ctx, sr.opts.Catalog, sr.opts.Endpoints.Of(ctx).MayHave)
	begun := time.Now()
	found, err := sr.search(ctx, s, lang)
	if err == nil {
		sr.opts.Telemetry.RecordSearch(ctx, found.Weak, time.Since(begun))
		sr.opts.Telemetry.RecordTokens(ctx, "search", found.cost, 0)
	}
	return found, err
}

// search is Search without waiting for upstreams.
func (sr *Searcher) search(ctx context.Context, s Request, lang codegen.Language) (Found, error) {
	missing := sr.parseQuery(ctx, &s)
	found := Found{Detail: s.Detail, Language: string(lang), Listing: s.Query == "", Upstream: s.Upstream, Unknown: missing}
	found.Upstreams = sr.foundUpstreams(ctx, s.Upstream, found.listsUpstreams())
	if found.listsUpstreams() {
		found.Problem = sr.opts.Problem()
		l := sr.layout(s, &found)
		l.fillUpstreams()
		found.cost = l.used
		return found, nil
	}
	if s.Upstream == toolcall.GatewayID && found.Listing {
		s.Budget = max(s.Budget, functionsBudget)
	}
	list, err := sr.candidates(ctx, s, lang, &found)
	if err != nil {
		return Found{}, err
	}
	found.rate(list)
	l := sr.layout(s, &found)
	l.fill(s, list)
	found.cost = l.used
	sr.recordSearch(ctx, found)
	return found, nil
}

// candidate is a match of a search, shown if there is room.
type candidate struct {
	id    tool.ID
	score float64
	// cover is how much of the query it matches, 0 to 1.
	cover float64
	// exact says that the query is its name, offer that it is a resource, a template or a prompt.
	exact    bool
	offer    bool
	describe func(Detail) FoundTool
	// hints returns notes in addition to the signature; nil if there are none.
	hints func() []string
}

// candidates returns the matches, best first.
func (sr *Searcher) candidates(ctx context.Context, s Request, lang codegen.Language, found *Found) ([]candidate, error) {
	switch {
	case s.Upstream == toolcall.GatewayID && found.Listing:
		return listFunctions(found, lang), nil
	case s.Upstream == toolcall.GatewayID:
		return sr.searchFunctions(ctx, s, lang, found)
	}
	if s.Upstream == toolcall.SkillsID && !sr.opts.Catalog.Has(toolcall.SkillsID) {
		return sr.searchSkills(ctx, s, found)
	}
	if found.Listing {
		found.Offers = sr.opts.Catalog.OffersText(s.Upstream, lang)
	}
	query := index.Query{Text: s.Query, Upstream: s.Upstream, Limit: s.candidates()}
	found.words = sr.addSignals(ctx, &query)
	results, err := sr.in(ctx).rank(ctx, query)
	if err != nil {
		return nil, SearchError(err)
	}
	found.setTotals(results)
	list, best := sr.hits(ctx, s, lang, results.Hits, found)
	if found.Listing {
		return list, nil
	}
	found.Quarantined = append(found.Quarantined, sr.heldNamed(ctx, s.Query, found.Quarantined)...)
	return sr.addNonTools(ctx, s, lang, found, diversify(list), best)
}

const (
	// maxSameUpstream is how many of the first tools may be of one upstream if another has a
	// tool that matches nearly as much: minCoverRatio times what the first tool matches.
	maxSameUpstream = 3
	minCoverRatio   = 0.9
)

// diversify moves up the best tool of another upstream if the first tools are all of one,
// so that repeated words do not keep other upstreams out of the answer.
func diversify(list []candidate) []candidate {
	other := func(c candidate) bool { return c.id.Upstream != list[0].id.Upstream }
	if len(list) <= maxSameUpstream || slices.ContainsFunc(list[:maxSameUpstream+1], other) {
		return list
	}
	at := slices.IndexFunc(list, func(c candidate) bool { return other(c) && c.cover > 0 && c.cover >= minCoverRatio*list[0].cover })
	if at < 0 {
		return list
	}
	moved := list[at]
	return slices.Insert(slices.Delete(list, at, at+1), maxSameUpstream, moved)
}

// setTotals copies the totals and suggestions of an index's results.
func (f *Found) setTotals(r index.Results) {
	f.right, f.needs = r.Confidence, r.Needs
	f.Total, f.Weak, f.Unmatched, f.Suggest, f.Likely = r.Total, r.Weak, r.Unmatched, r.Suggest, r.Upstreams
}

// namesTool reports whether a query is the name or the id of a tool, in any case and with any separators.
func namesTool(query string, id tool.ID) bool {
	asked := foldName(query)
	return asked != "" && !strings.ContainsAny(strings.TrimSpace(query), " \t\n") && (asked == foldName(id.Name) || asked == foldName(id.String()))
}

// foldName returns a name in lower case without separators.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// SearchError returns the error of an index as a *tool.Error.
func SearchError(err error) error {
	if errors.Is(err, index.ErrClosed) {
		return toolcall.ClosedError()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return tool.AsError(err)
	}
	return &tool.Error{Kind: tool.Internal, Message: "the search failed", Err: err}
}

// normalize fills in defaults and rejects invalid values.
func (sr *Searcher) normalize(ctx context.Context, s *Request) (codegen.Language, error) {
	interpreter, err := execution.Interpreter(s.Language)
	if err != nil {
		return "", err
	}
	s.Query, s.Upstream = strings.TrimSpace(strings.ToValidUTF8(s.Query[:min(len(s.Query), MaxQuery)], "")), toolcall.TrimName(s.Upstream)
	if s.Detail = plainDetail(s.Detail); s.Detail == "" {
		s.Detail = Signature
	}
	if !s.Detail.valid() {
		return "", toolcall.NotOneOf("detail", string(s.Detail), "use names, summary, signature or full")
	}
	if s.Upstream, err = sr.upstreamID(ctx, s.Upstream); err != nil {
		return "", err
	}
	s.Limit = max(0, min(s.Limit, MaxLimit))
	if s.Budget <= 0 {
		s.Budget = defaultBudget
	}
	return codegen.Language(execution.LanguageName(interpreter)), nil
}

// plainDetail returns the level of detail for the word of another server.
func plainDetail(asked Detail) Detail {
	switch word := Detail(strings.ToLower(strings.TrimSpace(string(asked)))); word {
	case "name":
		return Names
	case "description", "descriptions", "brief":
		return Summary
	case "signatures":
		return Signature
	default:
		return word
	}
}

// upstreamID finds an upstream, the built-in functions or skills by id, or an upstream by its name in the settings.
func (sr *Searcher) upstreamID(ctx context.Context, name string) (string, error) {
	if name == toolcall.GatewayID || name == toolcall.SkillsID && !sr.opts.Catalog.Has(toolcall.SkillsID) {
		return name, nil
	}
	return sr.in(ctx).upstreamID(name)
}

const (
	// MaxQuery is how much of a query is read, in bytes: it is compared with many names.
	MaxQuery = 4 << 10
	// MaxLimit is the most hits of one search.
	MaxLimit = 200
	// defaultBudget is how many tokens an answer may have.
	defaultBudget = 400
	// needBudget is how many more it may have for each further need of a query with several.
	needBudget = 200
	// functionsBudget is enough for all built-in functions with their signatures, in a list.
	functionsBudget = 600
	// minHitTokens is the minimum cost of a hit.
	minHitTokens = 5
	// minCandidates is how many hits are considered even for a small budget.
	minCandidates = 20
)

// candidates returns how many hits there can be room for.
func (s Request) candidates() int {
	if s.Limit > 0 {
		return s.Limit
	}
	if s.Query == "" {
		return MaxLimit
	}
	return min(max(s.Budget/minHitTokens, minCandidates), MaxLimit)
}

// foundUpstreams lists every upstream if all is set, else the searched ones that are not available.
func (sr *Searcher) foundUpstreams(ctx context.Context, only string, all bool) []FoundUpstream {
	var ups []FoundUpstream
	for _, up := range sr.opts.Upstreams(ctx) {
		found := FoundUpstream{ID: up.ID, Description: sanitize.Line(up.Description, 120), Tools: up.State.Tools, Held: up.Held, Problem: up.Problem()}
		if all || found.Problem != "" && (only == "" || only == up.ID) {
			ups = append(ups, found)
		}
	}
	return ups
}

// maxNotes bounds the notes of the best hit, in bytes.
const maxNotes = 160

func describe(t tool.Tool, detail Detail, lang codegen.Language, usual catalog.Boilerplate) FoundTool {
	found := FoundTool{ID: t.ID, Destructive: t.Annotations.Destructive != nil && *t.Annotations.Destructive}
	if detail == Names {
		return found
	}
	found.Summary = usual.Summary(t)
	switch detail {
	case Signature:
		found.Import, found.Text = codegen.Import(t.ID, lang), usual.Params.Signature(t, lang)
	case brief:
		found.Import, found.Text = codegen.Import(t.ID, lang), usual.Params.Brief(t, lang)
	case Full:
		found.Import, found.parts = codegen.Import(t.ID, lang), codegen.Describe(t, lang)
		found.Text, found.Hints = found.parts.Text, hints(t.Annotations)
		if len(found.Hints) > 0 {
			found.Text += "\n\nThe upstream says: " + strings.Join(found.Hints, ", ")
		}
		if example := codegen.Example(t, lang); example != "" {
			found.Text += "\n\nExample: " + example
		}
	}
	return found
}

// hints returns the names of the annotations that are true.
func hints(a tool.Annotations) (words []string) {
	for _, hint := range []struct {
		holds *bool
		word  string
	}{{a.ReadOnly, "read-only"}, {a.Destructive, "destructive"}, {a.Idempotent, "idempotent"}, {a.OpenWorld, "open-world"}} {
		if hint.holds != nil && *hint.holds {
			words = append(words, hint.word)
		}
	}
	return words
}
