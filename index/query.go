package index

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/blevesearch/bleve/v2/analysis"
)

// Limits of a query. Text beyond them is ignored, so that no query is slow.
const (
	maxQueryBytes = 4096
	maxQueryWords = 48
	// maxShort is the length of a query, in words, up to which three adjacent words are
	// joined too, maxNames the maximum number of identifiers that are looked up,
	// minDashed the minimum length of an identifier with a dash.
	maxShort  = 8
	maxNames  = 8
	minDashed = 8
	// maxAddress is the maximum number of words before a colon that may name upstreams.
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

// list splits text as the index does and returns its words in order, including stop words.
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

// request is a parsed query.
type request struct {
	// list holds the words in order, words the distinct ones.
	list, words []queryWord
	// compounds holds adjacent words as one: "pull request" also matches pullrequest.
	compounds []compound
	// wholeKey is the pin key of the entire text, parts holds those of identifiers in it.
	wholeKey string
	nameKeys []string
	// upstream restricts the search; unknown is a requested upstream that does not exist.
	upstream, unknown string
	// addressed holds the upstreams named before a colon at the start of the query.
	addressed []string
	// text is the query without what restricts it.
	text string
}

// contentWords returns the distinct words without stop words.
func (r request) contentWords() []queryWord {
	return slices.DeleteFunc(slices.Clone(r.words), func(w queryWord) bool { return w.stop })
}

// empty reports whether the query has no words. It may still have an upstream.
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
	kept = replaceValues(kept)
	r.readWords(s.analyzers.list(strings.Join(kept, " ")), s.analyzers.roles(kept))
	return r
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return s[len(prefix):], true
}

// resolveUpstream replaces the upstream by the known id that differs only in case or separators.
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

// readAddress moves the ids of upstreams before a colon, as in "filesystem: list a
// folder", from fields to addressed, and returns the other fields.
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

// readNames records the texts that may be a tool's exact name.
func (r *request) readNames(fields []string) {
	for _, f := range fields {
		f = strings.Trim(f, "`'\"()[]{}<>,;:?!*")
		if identifier(f) {
			r.nameKeys = append(r.nameKeys, pinKey(f))
		}
	}
	r.wholeKey = pinKey(strings.Trim(strings.Join(fields, " "), "`'\"()[]{}<>,;:?!*. "))
	r.nameKeys = r.nameKeys[:min(len(r.nameKeys), maxNames)]
}

// identifier reports whether a word is written like an identifier. "Search" at the
// start of a sentence is not, nor is "to-do".
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

// pinKey is like nameKey but keeps the dot between an upstream and a name.
func pinKey(text string) string {
	if up, name, ok := strings.Cut(text, "."); ok {
		return nameKey(up) + "." + nameKey(name)
	}
	return nameKey(text)
}

// readWords sets the words of the request, and the joined adjacent words.
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
			r.addCompound(words[i : i+n])
		}
	}
	if !slices.ContainsFunc(r.words, func(w queryWord) bool { return !w.stop }) {
		for i := range r.words {
			r.words[i].stop = false
		}
	}
}

// compound is adjacent words written as one, and their stems.
type compound struct {
	text  string
	stems []string
}

func (r *request) addCompound(words []queryWord) {
	var j compound
	for _, w := range words {
		if !w.plain {
			return
		}
		j.text += w.text
		j.stems = append(j.stems, w.stem)
	}
	if len(j.text) <= maxWordRunes {
		r.compounds = append(r.compounds, j)
	}
}
