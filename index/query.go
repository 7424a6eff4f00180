package index

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/blevesearch/bleve/v2/analysis"
)

// Bounds of a query: what lies beyond is not read, so that no text makes a search slow.
const (
	maxQueryBytes = 4096
	maxQueryWords = 48
	// maxShort is the most words of which also three neighbours are joined, maxNames
	// the most identifiers that are looked up, minDashed the shortest with a dash.
	maxShort  = 8
	maxNames  = 8
	minDashed = 8
	// maxAddress is the most words before a colon that are looked at for upstreams.
	maxAddress = 12
)

// queryWord is one word of a query, or of a name, in lower case.
type queryWord struct {
	text, stem string
	stop       bool
	// plain is false for the letter pairs of scripts without spaces.
	plain bool
	role  role
}

// list splits text as the index does and returns its words in their order, stop words too.
func (a *analyzers) list(text string) []queryWord {
	var words []queryWord
	for _, t := range a.split.Analyze([]byte(text)) {
		w := queryWord{text: string(t.Term), stem: string(t.Term), plain: t.Type == analysis.AlphaNumeric}
		if w.plain {
			w.stem = string(a.stem.stem(t.Term))
			w.stop = a.stops[w.text] || a.fillers[w.text]
		}
		words = append(words, w)
	}
	return words
}

// request is a query as it was understood.
type request struct {
	// list are the words in their order, words those of them that differ.
	list, words []queryWord
	// joined are neighbours written as one: "pull request" also asks for pullrequest.
	joined []joint
	// whole is the key of the entire text, parts those of identifiers in it.
	whole string
	parts []string
	// upstream restricts; unknown is one that was asked for and does not exist.
	upstream, unknown string
	// addressed are the upstreams with ids before a colon at the head of the query.
	addressed []string
	// text is the query without what restricts it.
	text string
}

// telling returns the words that say something.
func (r request) telling() []queryWord {
	return slices.DeleteFunc(slices.Clone(r.words), func(w queryWord) bool { return w.stop })
}

// empty reports whether nothing was asked but, perhaps, an upstream.
func (r request) empty() bool { return len(r.words) == 0 }

func (s *snapshot) parse(q Query) request {
	text := strings.TrimSpace(cutText(q.Text, maxQueryBytes))
	r := request{upstream: q.Upstream, text: text}
	var kept []string
	for raw := range strings.FieldsSeq(text) {
		name, ok := cutPrefixFold(raw, "upstream:")
		if !ok || name == "" {
			kept = append(kept, raw)
			continue
		}
		r.upstream = cmp.Or(r.upstream, name)
	}
	r.resolveUpstream(s)
	kept = r.readAddress(s, kept)
	r.readNames(kept)
	kept = plainValues(kept)
	r.readWords(s.words.list(strings.Join(kept, " ")), s.words.roles(kept))
	return r
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return s[len(prefix):], true
}

// resolveUpstream takes another case or other separators for the upstream's id.
func (r *request) resolveUpstream(s *snapshot) {
	if r.upstream == "" {
		return
	}
	key := nameKey(r.upstream)
	for _, up := range s.upstreams {
		if up.id == r.upstream || nameKey(up.id) == key {
			r.upstream = up.id
			return
		}
	}
	r.unknown, r.upstream = r.upstream, ""
}

// readAddress takes the ids of upstreams from what stands before a colon, as in
// "filesystem: list a folder", which models write: they are no words to look for in tools.
func (r *request) readAddress(s *snapshot, fields []string) []string {
	head := 1 + slices.IndexFunc(fields[:min(len(fields), maxAddress)], func(f string) bool { return strings.HasSuffix(f, ":") })
	if head == 0 || head == len(fields) {
		return fields
	}
	rest := slices.DeleteFunc(slices.Clone(fields[:head]), func(f string) bool {
		key := nameKey(strings.Trim(f, "`'\"()[]{}<>,;:"))
		at := slices.IndexFunc(s.upstreams, func(up upstream) bool { return nameKey(up.id) == key })
		if at >= 0 {
			r.addressed = append(r.addressed, s.upstreams[at].id)
		}
		return at >= 0
	})
	return append(rest, fields[head:]...)
}

// readNames notes what could be a tool's exact name.
func (r *request) readNames(fields []string) {
	for _, f := range fields {
		f = strings.Trim(f, "`'\"()[]{}<>,;:?!*")
		if identifier(f) {
			r.parts = append(r.parts, pinKey(f))
		}
	}
	r.whole = pinKey(strings.Trim(strings.Join(fields, " "), "`'\"()[]{}<>,;:?!*. "))
	r.parts = r.parts[:min(len(r.parts), maxNames)]
}

// identifier reports whether a word of a sentence is written as only names are.
// "Search" at the head of a sentence is not, nor is "to-do".
func identifier(w string) bool {
	if strings.ContainsAny(w, "_.") || strings.Contains(w, "-") && len(w) >= minDashed {
		return true
	}
	runes := []rune(cutText(w, maxNameText))
	for i := 1; i < len(runes); i++ {
		if unicode.IsLower(runes[i-1]) && unicode.IsUpper(runes[i]) {
			return true
		}
	}
	return false
}

// pinKey is nameKey that keeps the dot between an upstream and a name.
func pinKey(text string) string {
	if up, name, ok := strings.Cut(text, "."); ok {
		return nameKey(up) + "." + nameKey(name)
	}
	return nameKey(text)
}

// readWords keeps each word once, and the neighbours joined.
func (r *request) readWords(words []queryWord, roles map[string]role) {
	r.list = words[:min(len(words), 4*maxQueryWords)]
	seen := map[string]bool{}
	for i, w := range r.list {
		w.role = roles[w.text]
		if len(r.words) == maxQueryWords {
			break
		}
		if !seen[w.stem] {
			seen[w.stem] = true
			r.words = append(r.words, w)
		}
		for n := 2; n <= 3 && i+n <= len(words) && (n == 2 || len(words) <= maxShort); n++ {
			r.addJoined(words[i : i+n])
		}
	}
	if !slices.ContainsFunc(r.words, func(w queryWord) bool { return !w.stop }) {
		for i := range r.words {
			r.words[i].stop = false
		}
	}
}

// joint are neighbours written as one, and their stems.
type joint struct {
	text  string
	stems []string
}

func (r *request) addJoined(words []queryWord) {
	var j joint
	for _, w := range words {
		if !w.plain {
			return
		}
		j.text += w.text
		j.stems = append(j.stems, w.stem)
	}
	if len(j.text) <= maxWordRunes {
		r.joined = append(r.joined, j)
	}
}
