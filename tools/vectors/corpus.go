package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sallyport/index"
	"sallyport/internal/testutil/ireval"
)

const (
	// common is the maximum frequency rank of the WordNet words that are trained.
	common = 30_000
	// Repetitions of the pairs of a source, since words far outnumber tools, and tools outnumber phrases.
	toolWeight, lexiconWeight = 3, 5
)

// readPairs returns all training pairs.
func readPairs(t *table, s settings) ([]pair, error) {
	c := &corpus{table: t}
	for _, kind := range []string{"noun", "verb", "adj", "adv"} {
		if err := c.lines(filepath.Join(s.wordnet, "data."+kind), c.synset); err != nil {
			return nil, err
		}
	}
	words := len(c.pairs)
	if err := c.tools(s); err != nil {
		return nil, err
	}
	c.repeat(words, toolWeight)
	tools := len(c.pairs)
	if err := c.lexicons(s.index); err != nil {
		return nil, err
	}
	c.repeat(tools, lexiconWeight)
	return c.pairs, nil
}

// corpus collects training pairs.
type corpus struct {
	*table
	pairs []pair
}

// repeat repeats the pairs from index first on, so that each occurs times times.
func (c *corpus) repeat(first, times int) {
	all := c.pairs[first:]
	for range times - 1 {
		c.pairs = append(c.pairs, all...)
	}
}

// pair adds a pair, unless one of its texts has no known word.
func (c *corpus) pair(a, b []int32) {
	if len(a) > 0 && len(b) > 0 {
		c.pairs = append(c.pairs, pair{a, b})
	}
}

// rows returns the rows of the first most known words of text.
func (c *corpus) rows(text string, most int) []int32 {
	var rows []int32
	for _, w := range split(text) {
		if i, ok := c.find(w); ok && len(rows) < most {
			rows = append(rows, i)
		}
	}
	return rows
}

func (c *corpus) lines(file string, each func(string) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(strings.TrimSuffix(line, "\n")); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
}

// synset reads a line of WordNet: synonyms | gloss; "an example". It pairs each word with the
// gloss, the first word with the others, and each example with the gloss.
func (c *corpus) synset(line string) error {
	if strings.HasPrefix(line, "  ") { // licence text
		return nil
	}
	head, tail, _ := strings.Cut(line, "|")
	fields := strings.Fields(head)
	if len(fields) < 4 {
		return fmt.Errorf("unexpected line %q", line)
	}
	n, err := strconv.ParseInt(fields[3], 16, 0)
	if err != nil || len(fields) < 4+2*int(n) {
		return fmt.Errorf("unexpected line %q", line)
	}
	var known [][]int32
	for i := range int(n) {
		if rows, ok := c.lemma(fields[4+2*i]); ok {
			known = append(known, rows)
		}
	}
	if len(known) > 0 {
		c.gloss(known, tail)
	}
	return nil
}

// lemma returns the rows of one word, or of several joined by "_", if all are known and common.
func (c *corpus) lemma(text string) ([]int32, bool) {
	text, _, _ = strings.Cut(text, "(")
	words, rows := split(strings.ReplaceAll(text, "_", " ")), c.rows(strings.ReplaceAll(text, "_", " "), 5)
	for _, i := range rows {
		if i > common {
			return nil, false
		}
	}
	return rows, len(rows) == len(words) && len(rows) > 0
}

func (c *corpus) gloss(known [][]int32, tail string) {
	var gloss, examples []string
	for part := range strings.SplitSeq(tail, ";") {
		if part = strings.TrimSpace(part); strings.HasPrefix(part, `"`) {
			examples = append(examples, part)
		} else {
			gloss = append(gloss, part)
		}
	}
	rows := c.rows(strings.Join(gloss, " "), 24)
	for i, word := range known {
		c.pair(word, rows)
		if i > 0 {
			c.pair(known[0], word)
		}
	}
	for _, e := range examples {
		c.pair(c.rows(e, 20), rows)
	}
}

// tools reads the texts of the tools, but not the queries, of the catalogue and of the judged sets.
func (c *corpus) tools(s settings) error {
	catalog, err := ireval.ReadCatalog(filepath.Join(s.shared, "catalog"), s.queries)
	if err != nil {
		return fmt.Errorf("read catalog: %w", err)
	}
	sets := []*ireval.Set{catalog}
	for _, name := range []string{"livemcp", "bfcl", "mcpproxygold"} { // the other sets judge the vectors too
		set, err := ireval.Read(filepath.Join(s.shared, "retrieval"), name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		sets = append(sets, set)
	}
	seen := map[string]bool{}
	for _, set := range sets {
		for _, e := range set.Entries {
			key := e.Tool.Wire + e.Tool.Description
			if !seen[key] && !slices.Contains(strings.Split(s.exclude, ","), set.Name) {
				seen[key] = true
				c.tool(index.FromTool(e.Tool, e.About))
			}
		}
	}
	return nil
}

var sentence = regexp.MustCompile(`[.!?。]\s|\n`)

// tool pairs the name, the first sentence, the rest of the description and the parameters.
func (c *corpus) tool(d index.Doc) {
	texts := append(sentence.Split(strings.TrimSpace(d.Description), 2), "")
	name, lead, rest := c.rows(d.Wire, 12), c.rows(texts[0], 40), c.rows(texts[1], 60)
	full := append(c.rows(d.ID.Upstream, 4), name...)
	var names, about strings.Builder
	for _, p := range d.Params {
		names.WriteString(p.Name + " ")
		about.WriteString(p.Description + " ")
	}
	params, told := c.rows(names.String(), 30), c.rows(about.String(), 60)
	c.pair(name, lead)
	c.pair(full, lead)
	c.pair(name, rest)
	c.pair(lead, rest)
	c.pair(full, told)
	c.pair(params, told)
	c.pair(full, slices.Concat(params, told))
}

// lexicons reads the phrases and synonyms of package index.
func (c *corpus) lexicons(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "phrases", "*.txt"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := c.lines(file, c.phrases); err != nil {
			return err
		}
	}
	return c.lines(filepath.Join(folder, "synonyms.txt"), c.synonyms)
}

func (c *corpus) phrases(line string) error {
	line, _, _ = strings.Cut(line, "#")
	said, meant, _ := strings.Cut(line, ">")
	for phrase := range strings.SplitSeq(said, ",") {
		c.pair(c.rows(phrase, 6), c.rows(meant, 12))
	}
	return nil
}

func (c *corpus) synonyms(line string) error {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	for i, a := range words {
		for _, b := range words[:i] {
			c.pair(c.rows(a, 2), c.rows(b, 2))
		}
	}
	return nil
}
