package index

import (
	"context"
	"strings"
	"unicode"
)

// Weigh returns the stems of the content words in text, each weighted by its rarity
// in the documents. It parses text as Search does, but omits values and possible
// secrets: names, numbers, quoted text, addresses, paths, keys. It returns nil after
// Close.
func (ix *Index) Weigh(ctx context.Context, text string) map[string]float64 {
	for {
		s := ix.current.Load()
		if s == nil {
			return nil
		}
		if weights, ok := s.tryWeigh(ctx, text); ok {
			return weights
		}
	}
}

// tryWeigh implements Weigh. ok is false if the snapshot is retired.
func (s *snapshot) tryWeigh(ctx context.Context, text string) (all map[string]float64, ok bool) {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.retired {
		return nil, false
	}
	all, run := map[string]float64{}, &search{snapshot: s}
	for _, w := range s.parse(Query{Text: withoutSecrets(text)}).words {
		if w.stop || w.role == roleProper || w.role == roleValue {
			continue
		}
		having, err := run.docFreq(ctx, w.stem)
		if err != nil {
			return nil, true
		}
		all[w.stem] = inverseDocFreq(len(s.docs), having)
	}
	return all, true
}

// keyLength is the minimum length of a key of letters and digits, so that "oauth2" is
// a word. A name with at least minPieces parts that average below pieceLength bytes is a key.
const (
	keyLength   = 7
	pieceLength = 3
	minPieces   = 6
)

// withoutSecrets returns text without addresses, paths, keys and assigned values.
func withoutSecrets(text string) string {
	var kept []string
	for field := range strings.FieldsSeq(cutText(text, maxQueryBytes)) {
		name, _, assigned := strings.Cut(field, "=")
		switch {
		case replaceValue(field) != field:
			field, _, _ = strings.Cut(replaceValue(field), " ")
		case assigned:
			field = name
		}
		if !strings.Contains(field, "@") && !keyLike(field) {
			kept = append(kept, field)
		}
	}
	return strings.Join(kept, " ")
}

// keyLike reports whether a word looks like a key: letters mixed with digits, or many changes of case.
func keyLike(w string) bool {
	if len(w) > maxNameText {
		return true
	}
	digits := strings.ContainsFunc(w, unicode.IsDigit)
	letters := strings.ContainsFunc(w, unicode.IsLetter)
	parts := len(splitWord([]byte(w)))
	return len(w) >= keyLength && digits && letters || parts >= minPieces && len(w) < pieceLength*parts || parts == maxWordParts
}
