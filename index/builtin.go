package index

import (
	"fmt"
	"sync"
)

// builtIn is what the index knows before it has documents. It does not change.
type builtIn struct {
	words *analyzers
	// related maps a term to its synonyms.
	related map[string][]string
	phrases phraseTable
}

// readBuiltIn reads what is embedded, once for all indexes of a process: a gateway has three.
var readBuiltIn = sync.OnceValues(func() (*builtIn, error) {
	words, err := newAnalyzers()
	if err != nil {
		return nil, fmt.Errorf("make analyzers: %w", err)
	}
	phrases, err := readPhrases(words, phraseFiles)
	if err != nil {
		return nil, err
	}
	useLists()
	return &builtIn{words: words, related: synonymTable(words.stem.stem), phrases: phrases}, nil
})
