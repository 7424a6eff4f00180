// Package names finds names of people and addresses in prose with a built-in linear model over the form of each word
// and its neighbours, and the word lists that contain them. tools/names trains the model.
package names

import "strings"

// tag classifies a token.
type tag uint8

// The tags.
const (
	outside tag = iota
	person
	address
	place
	tags = 4
)

const (
	// hashBits is how many bits the digest of a feature has.
	hashBits = 17
	// nameThreshold is the margin by which a name must beat no name, in percent of a weight of 1: it trades recall for
	// precision.
	nameThreshold = 55
	// maxLength is the longest span, in bytes.
	maxLength = 250
)

// The sorts of spans.
const (
	Person  = "PERSON"
	Address = "ADDRESS"
	// Place is a town, a region or a country that is not part of an address.
	Place = "LOCATION"
)

var sorts = [tags]string{"", Person, Address, Place}

// Span is a part of a text, in bytes.
type Span struct {
	Sort       string
	Start, End int
}

// weights are the weights of one feature, or of the transitions from one tag, for each tag.
type weights [tags]int8

// Model is read only.
type Model struct {
	lists    [classes]filter
	features []weights
	// scale is the value of a weight of 1.
	scale       float32
	transitions [tags][tags]float32 // from a tag to the next one
}

// Find returns the spans in a text, in order.
func (m *Model) Find(text string) (found []Span) {
	list := tokens(text, nil)
	ws := m.words(text, list)
	path := best(m.scores(ws), &m.transitions)
	for i := 0; i < len(path); {
		j := i + 1
		for ; j < len(path) && path[j] == path[i] && (path[i] == address || list[j].lines == 0); j++ {
		}
		s := Span{sorts[path[i]], list[i].start, list[j-1].end}
		if path[i] != outside && s.End-s.Start <= maxLength && likely(path[i], ws[i:j]) && !glued(text, s) {
			found = append(found, s)
		}
		i = j
	}
	return found
}

func (m *Model) words(text string, list []token) []word {
	ws := make([]word, len(list))
	var before, second *word
	for i, t := range list {
		ws[i] = m.word(text, t, before, second)
		before, second = &ws[i], before
	}
	return ws
}

// scores returns the score of each tag for each token.
func (m *Model) scores(ws []word) [][tags]float32 {
	out := make([][tags]float32, len(ws))
	var room [maxFeatures]uint32
	for i := range ws {
		var sum [tags]int32
		for _, f := range features(ws, i, room[:0]) {
			w := &m.features[f]
			for t := range sum {
				sum[t] += int32(w[t])
			}
		}
		for t, v := range sum {
			out[i][t] = float32(v) * m.scale
		}
		out[i][person] -= nameThreshold
	}
	return out
}

// best returns the tag sequence with the highest score.
func best(scores [][tags]float32, moves *[tags][tags]float32) []tag {
	if len(scores) == 0 {
		return nil
	}
	from := make([][tags]tag, len(scores))
	sum := scores[0]
	for i := 1; i < len(scores); i++ {
		var next [tags]float32
		for t := range tags {
			most := float32(-1e30)
			for p := range tags {
				if v := sum[p] + moves[p][t]; v > most {
					most, from[i][t] = v, tag(p)
				}
			}
			next[t] = most + scores[i][t]
		}
		sum = next
	}
	last := outside
	for t := range tags {
		if sum[t] > sum[last] {
			last = tag(t)
		}
	}
	path := make([]tag, len(scores))
	for i := len(path) - 1; i >= 0; i-- {
		path[i] = last
		last = from[i][last]
	}
	return path
}

// glued reports whether a span is part of something longer: a path, an identifier, an e-mail address.
func glued(text string, s Span) bool {
	if s.Start > 0 && strings.IndexByte(`._/\@$#=<-&%`, text[s.Start-1]) >= 0 {
		return true
	}
	if s.End == len(text) {
		return false
	}
	switch text[s.End] {
	case '_', '/', '\\', '@', '=', '(', '[', '{', '<', '-', '&':
		return true
	case '.', ':':
		return s.End+1 < len(text) && text[s.End+1] > ' ' && text[s.End+1] != '"' && text[s.End+1] != '\''
	}
	return false
}

// likely reports whether words can have a tag, whatever the context.
func likely(t tag, ws []word) bool {
	const listed = givenName | surname | city | region
	capitals, digits, roads := 0, 0, 0
	for _, w := range ws {
		switch {
		case w.shape == shapeCapital,
			w.shape == shapeMixed && (w.in&listed != 0 || len(ws) > 1),
			w.shape == shapeUpper && (w.in&listed != 0 && w.in&common == 0 || len(ws) > 1):
			capitals++
		case w.shape&15 == shapeDigits:
			digits++
		}
		if w.in&road != 0 {
			roads++
		}
	}
	return capitals > 0 || t == address && digits > 0 && roads > 0
}
