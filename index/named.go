package index

import (
	"context"
	"slices"
	"strings"
)

const (
	// maxNamed is the maximum number of words of an upstream's id that is looked for in a query.
	maxNamed = 3
	// leading are the words after which a word in small letters may name an upstream, as at the start and at the end of a
	// query. It does if it is rare elsewhere: in at most rareShare of the other documents, or in rareDocs.
	leading   = " at by from in into of on through to using via with "
	rareShare = 0.01
	rareDocs  = 1
	// aliasShare is the share of an upstream's tools that have a product's name from which on the name means the
	// upstream: "Jira" in a server of its vendor.
	aliasShare = 0.3
	// namedBoost is the boost of the tools of a named upstream, as a share of the best score, and briefBoost the same in a query
	// of at most briefQuery content words, where the name is a large part of what is asked.
	namedBoost, briefBoost = 0.3, 0.8
	briefQuery             = 4
)

// mentions finds the upstreams that a query names.
type mentions struct {
	*search
	// byID holds the named upstreams, by index.
	byID map[int32]bool
	// aliases holds the documents that have a name of a product that means their upstream.
	aliases map[int32]bool
}

// findMentions returns the upstreams that the query names by their ids or by names of products.
func (r *search) findMentions(ctx context.Context) (mentions, error) {
	m := mentions{r, map[int32]bool{}, map[int32]bool{}}
	if len(r.upstreams) < 2 {
		return m, nil
	}
	used, err := m.readIDs(ctx)
	if err != nil {
		return m, err
	}
	for _, w := range r.req.contentWords() {
		plural := w.text == w.stem+"s" // a team is no Teams
		if w.role == roleProduct && !used[w.stem] && !plural {
			if err := m.readAlias(ctx, w.stem); err != nil {
				return m, err
			}
		}
	}
	return m, nil
}

// readIDs finds the upstreams whose ids are in the query, and returns the stems of these words.
func (m mentions) readIDs(ctx context.Context) (used map[string]bool, err error) {
	used = map[string]bool{}
	grams := m.grams()
	for i, up := range m.upstreams {
		words, ok := grams[serverKey(up.id)]
		if !ok {
			continue
		}
		named, err := m.means(ctx, words, up)
		if err != nil {
			return nil, err
		}
		m.byID[int32(i)] = named
		for _, w := range words {
			used[w.stem] = used[w.stem] || named
		}
	}
	return used, nil
}

// grams returns the sequences of words of the query with their roles, by their texts without separators.
func (m mentions) grams() map[string][]queryWord {
	roles := map[string]role{}
	for _, w := range m.req.words {
		roles[w.stem] = w.role
	}
	list := slices.Clone(m.req.list)
	grams := map[string][]queryWord{}
	for i := range list {
		list[i].role = roles[list[i].stem]
	}
	for i := range list {
		if !placed(list, i) {
			continue
		}
		var key strings.Builder
		for n, w := range list[i:min(i+maxNamed, len(list))] {
			key.WriteString(w.text)
			grams[key.String()] = list[i : i+n+1]
		}
	}
	return grams
}

// placed reports whether the i-th word may begin the name of an upstream.
func placed(list []queryWord, i int) bool {
	w := list[i]
	if i > 0 && list[i-1].text == "url" { // the host of an address, see replaceValue
		return false
	}
	return i == 0 || i == len(list)-1 || w.role == roleProduct || w.role == roleProper || strings.Contains(leading, " "+list[i-1].text+" ")
}

// serverKey returns an upstream's id in lower case, without separators and the words that any id may have.
func serverKey(id string) string {
	parts := strings.FieldsFunc(strings.ToLower(id), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	kept := slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "mcp" || p == "server" })
	if len(kept) == 0 {
		kept = parts
	}
	return strings.Join(kept, "")
}

// means reports whether words that are an upstream's id name it: a word of everyday language only does if it is
// written as a name.
func (m mentions) means(ctx context.Context, words []queryWord, up upstream) (bool, error) {
	for _, w := range words {
		if w.role == roleProduct || w.role == roleProper {
			return true, nil
		}
	}
	if len(words) == 1 && (words[0].stop || m.analyzers.verbs[words[0].stem]) {
		return false, nil
	}
	for _, w := range words {
		having, err := m.docFreq(ctx, w.stem)
		if err != nil {
			return false, err
		}
		others := len(m.docs) - (up.last - up.first)
		if float64(having-(up.last-up.first)) <= max(rareDocs, rareShare*float64(others)) {
			return true, nil
		}
	}
	return false, nil
}

// readAlias finds the upstream that most means by a word, if enough of its tools have it.
func (m mentions) readAlias(ctx context.Context, stem string) error {
	having := map[int32][]int32{}
	err := forEachPosting(ctx, m.reader, stem, func(number, _ uint64) {
		ord := m.ordOf[number]
		up := m.upstreamOf[ord]
		having[up] = append(having[up], ord)
	})
	if err != nil {
		return err
	}
	best, most := int32(-1), aliasShare
	for up, ords := range having {
		of := m.upstreams[up]
		if share := float64(len(ords)) / float64(of.last-of.first); share > most || share == most && up < best {
			best, most = up, share
		}
	}
	if best >= 0 {
		for _, ord := range having[best] {
			m.aliases[ord] = true
		}
	}
	return nil
}

// preferNamed boosts the tools of the upstreams that the query is addressed to or that it names.
func (r *search) preferNamed(ctx context.Context) error {
	m, err := r.findMentions(ctx)
	if err != nil {
		return err
	}
	top, by := r.top(), namedBoost
	if len(r.worth) <= briefQuery {
		by = briefBoost
	}
	for _, ord := range r.work.hit {
		switch {
		case slices.Contains(r.req.addressed, r.docs[ord].ID.Upstream):
			r.work.score[ord] += addressedBoost * top
		case m.byID[r.upstreamOf[ord]] || m.aliases[ord]:
			r.work.score[ord] += by * top
		}
	}
	return nil
}
