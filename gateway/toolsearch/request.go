package toolsearch

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// parseQuery removes from a query what is not searched for: the level of detail, the upstream filter, and
// general words. It returns the name of an unknown upstream in the filter, "" for
// none.
func (sr *Searcher) parseQuery(ctx context.Context, s *Request) (unknown string) {
	var rest []string
	for word := range strings.FieldsSeq(s.Query) {
		if detail, ok := strings.CutPrefix(word, "detail:"); ok && Detail(detail).valid() {
			s.Detail = Detail(detail)
			continue
		}
		switch id, missing := sr.filter(ctx, word); {
		case missing != "":
			unknown = missing
		case id == "":
			rest = append(rest, word)
		case s.Upstream == "":
			s.Upstream = id
		}
	}
	if len(rest) == 0 && unknown == "" || s.Upstream == "" && s.Query == toolcall.GatewayID {
		if s.Query == toolcall.GatewayID {
			s.Upstream = toolcall.GatewayID
		}
		s.Query = ""
		return unknown
	}
	if s.Query = strings.Join(rest, " "); sr.isGeneral(ctx, s.Query) {
		s.Query = ""
	}
	return unknown
}

// filter returns the upstream that a word of a query names, upstream:NAME or server:NAME. unknown is a name of the first
// form that no upstream has; the second form is then a word like any other. Both are "" for other words.
func (sr *Searcher) filter(ctx context.Context, word string) (id, unknown string) {
	key, name, _ := strings.Cut(word, ":")
	own := strings.EqualFold(key, "upstream")
	if name = strings.Trim(name, `"'`); name == "" || !own && !strings.EqualFold(key, "server") {
		return "", ""
	}
	id, err := sr.upstreamID(ctx, toolcall.TrimName(name))
	switch {
	case err == nil:
		return id, ""
	case own:
		return "", name
	}
	return "", ""
}

const (
	// maxGeneral is the length of the longest general question, in bytes.
	maxGeneral = 100
	// generalWords may be in a question about all tools, of generalThings at least one must be.
	generalWords = " a access all an any are at available can could do does everything find for from get give have help here how i in is list " +
		"mcp me my of offer please possible re s server servers show tell the there these this to use what which who with you your "
	generalThings = " capabilities capability functionality help mcp this tool toolbox tools upstream upstreams you "
)

// isGeneral reports whether a query asks for all tools rather than a specific one:
// "*", "list all tools", "what can you do?". The name of a tool never does.
func (sr *Searcher) isGeneral(ctx context.Context, query string) bool {
	if len(query) > maxGeneral {
		return false
	}
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return true
	}
	thing := false
	for _, w := range words {
		isThing := strings.Contains(generalThings, " "+w+" ")
		if !isThing && !strings.Contains(generalWords, " "+w+" ") {
			return false
		}
		thing = thing || isThing
	}
	name := foldName(query)
	return thing && !slices.ContainsFunc(sr.in(ctx).snapshot().Tools, func(t tool.Tool) bool { return foldName(t.ID.Name) == name })
}
