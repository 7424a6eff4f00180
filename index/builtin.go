package index

import (
	"fmt"
	"sync"
)

// builtIn holds the embedded language data. It is immutable.
type builtIn struct {
	analyzers *analyzers
	// related maps a term to its synonyms.
	related map[string][]string
	phrases phraseTable
}

// readBuiltIn parses the embedded data once per process; a gateway has three indexes.
var readBuiltIn = sync.OnceValues(func() (*builtIn, error) {
	words, err := newAnalyzers()
	if err != nil {
		return nil, fmt.Errorf("make analyzers: %w", err)
	}
	phrases, err := readPhrases(words, phraseFiles)
	if err != nil {
		return nil, err
	}
	registerSegmentPlugin()
	return &builtIn{analyzers: words, related: synonymTable(words.stem.stem), phrases: phrases}, nil
})
