package index

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sallyport/internal/packed"
)

// phraseFiles maps phrases of queries to the words of tool descriptions. A line is
// "phrase, phrase > word word; word word": each phrase means all concepts right of
// ">", which ";" separates; the words of one concept are alternatives. "#" begins a
// comment. Words match by their stems. "~" matches a few words between a verb and
// its particle: "throw ~ away" matches "throw old tickets away".
//
//go:embed phrases/*.txt
var phraseFiles embed.FS

const (
	// maxPhrase is the maximum number of words of a phrase, maxGap of stop words that a
	// query may have between two of them ("look it up"), maxOpen of words in place of
	// a "~".
	maxPhrase = 5
	maxGap    = 2
	maxOpen   = 4
)

// phrase is a sequence of stems, and the concepts that it means, each a list of alternative stems.
type phrase struct {
	stems    []string
	open     int // index of the stem after "~", 0 without one
	concepts [][]string
}

// phraseTable maps a stem to the phrases that begin with it, the longest first.
type phraseTable map[string][]phrase

// readPhrases reads all files in the folder phrases.
func readPhrases(words *analyzers, files fs.FS) (phraseTable, error) {
	names, err := fs.Glob(files, "phrases/*.txt")
	if err != nil {
		return nil, fmt.Errorf("list phrases: %w", err)
	}
	table := phraseTable{}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read phrases: %w", err)
		}
		if err := table.read(words, string(packed.Read(text))); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	table.sort()
	return table, nil
}

func (t phraseTable) sort() {
	for _, list := range t {
		slices.SortStableFunc(list, func(a, b phrase) int { return cmp.Compare(len(b.stems), len(a.stems)) })
	}
}

func (t phraseTable) read(words *analyzers, text string) error {
	n, known := 0, stemCache{analyzers: words, known: map[string][]string{}}
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := t.readLine(known, line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

func (t phraseTable) readLine(words stemCache, line string) error {
	left, right, ok := strings.Cut(line, ">")
	if !ok || strings.Contains(right, ">") {
		return fmt.Errorf("want one > in %q", line)
	}
	var concepts [][]string
	for text := range strings.SplitSeq(right, ";") {
		stems := words.stems(text)
		if len(stems) == 0 {
			return fmt.Errorf("want words between the semicolons of %q", line)
		}
		concepts = append(concepts, stems)
	}
	for text := range strings.SplitSeq(left, ",") {
		p := phrase{concepts: concepts}
		if err := p.read(words, text); err != nil {
			return err
		}
		t[p.stems[0]] = append(t[p.stems[0]], p)
	}
	return nil
}

// read parses the words of a phrase from text.
func (p *phrase) read(words stemCache, text string) error {
	before, after, open := strings.Cut(text, "~")
	p.stems = words.stems(before)
	rest := words.stems(after)
	if open && (len(p.stems) == 0 || len(rest) == 0 || strings.Contains(after, "~")) {
		return fmt.Errorf("want one ~, between words, in %q", text)
	}
	if open {
		p.open = len(p.stems)
		p.stems = append(p.stems, rest...)
	}
	if len(p.stems) == 0 || len(p.stems) > maxPhrase && !hasHighByte([]byte(p.stems[0])) { // scripts without spaces yield many letter pairs
		return fmt.Errorf("want 1 to %d words in %q", maxPhrase, text)
	}
	return nil
}

// stemCache caches the stems of words, which the files repeat often.
type stemCache struct {
	analyzers *analyzers
	known     map[string][]string
}

// stems returns the stems of all words of text, stop words too.
func (s stemCache) stems(text string) []string {
	if !ascii(text) {
		return s.analyzers.stems(text)
	}
	var stems []string
	for start, end := nextWord(text, 0); start < end; start, end = nextWord(text, end) {
		word := text[start:end]
		if _, ok := s.known[word]; !ok {
			s.known[word] = s.analyzers.stems(word)
		}
		stems = append(stems, s.known[word]...)
	}
	return stems
}

func (a *analyzers) stems(text string) []string {
	var stems []string
	for _, w := range a.list(text) {
		stems = append(stems, w.stem)
	}
	return stems
}

// phraseMatch is an occurrence of a phrase in a query.
type phraseMatch struct {
	phrase
	positions []int // the positions of its words
}

// find returns the phrases in words, without those inside a longer one.
func (t phraseTable) find(words []queryWord) []phraseMatch {
	var found []phraseMatch
	for i, w := range words {
		for _, p := range t[w.stem] {
			if at := p.match(words, i); at != nil && !inside(found, at) {
				found = append(found, phraseMatch{p, at})
			}
		}
	}
	return found
}

// inside reports whether a longer match in found has all positions of at.
func inside(found []phraseMatch, at []int) bool {
	return slices.ContainsFunc(found, func(f phraseMatch) bool {
		return len(f.positions) > len(at) && !slices.ContainsFunc(at, func(i int) bool { return !slices.Contains(f.positions, i) })
	})
}

// match returns the positions of the phrase's words in words from i on, or nil.
func (p phrase) match(words []queryWord, i int) []int {
	at := make([]int, 1, len(p.stems))
	at[0] = i
	for k, stem := range p.stems[1:] {
		next := p.next(words, at[len(at)-1]+1, stem, k+1 == p.open)
		if next < 0 {
			return nil
		}
		at = append(at, next)
	}
	return at
}

// next returns the position of stem in words at i or after a permitted gap, or -1.
func (phrase) next(words []queryWord, i int, stem string, open bool) int {
	most := maxGap
	if open {
		most = maxOpen
	}
	for gap := 0; gap <= most && i+gap < len(words); gap++ {
		if w := words[i+gap]; w.stem == stem {
			return i + gap
		} else if !open && !w.stop {
			return -1
		}
	}
	return -1
}
