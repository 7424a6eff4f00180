package index

import (
	"context"
	"strings"
	"unicode"
)

// Weigh returns the stems of the words in text that say something, each with how
// telling it is: the rarer in the names and first sentences of the documents, the
// more. It reads a text as Search does, but leaves out what a tool takes as a value
// and what may be a secret: names, numbers, what is quoted, addresses, paths,
// keys. After Close there are none.
func (ix *Index) Weigh(ctx context.Context, text string) map[string]float64 {
	for {
		s := ix.now.Load()
		if s == nil {
			return nil
		}
		if weights, ok := s.weights(ctx, text); ok {
			return weights
		}
	}
}

// weights is Weigh unless the snapshot is retired, which ok tells.
func (s *snapshot) weights(ctx context.Context, text string) (all map[string]float64, ok bool) {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.retired {
		return nil, false
	}
	all, run := map[string]float64{}, &search{snapshot: s}
	for _, w := range s.parse(Query{Text: public(text)}).words {
		if w.stop || w.role == proper || w.role == value {
			continue
		}
		having, err := run.having(ctx, w.stem)
		if err != nil {
			return nil, true
		}
		all[w.stem] = inverse(len(s.docs), having)
	}
	return all, true
}

// keyLength is the least length of letters and digits together that are no word, as
// "oauth2" is, pieceLength the mean length, in bytes, of the parts of a name.
const (
	keyLength   = 7
	pieceLength = 3
	minPieces   = 6
)

// public is a query without addresses, paths, keys and what is assigned.
func public(text string) string {
	var kept []string
	for field := range strings.FieldsSeq(cutText(text, maxQueryBytes)) {
		name, _, assigned := strings.Cut(field, "=")
		switch {
		case plainValue(field) != field:
			field, _, _ = strings.Cut(plainValue(field), " ")
		case assigned:
			field = name
		}
		if !strings.Contains(field, "@") && !keyLike(field) {
			kept = append(kept, field)
		}
	}
	return strings.Join(kept, " ")
}

// keyLike reports whether a word has both letters and digits, or changes its case, as only keys do.
func keyLike(w string) bool {
	if len(w) > maxNameText {
		return true
	}
	digits := strings.ContainsFunc(w, unicode.IsDigit)
	letters := strings.ContainsFunc(w, unicode.IsLetter)
	parts := len(splitWord([]byte(w)))
	return len(w) >= keyLength && digits && letters || parts >= minPieces && len(w) < pieceLength*parts || parts == maxWordParts
}
