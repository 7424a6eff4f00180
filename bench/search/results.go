package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"sallyport/bench/machine"
	"sallyport/internal/testutil/ireval"
)

// origin is what was judged, and with what. There is no date in it: the same commit on the same sets has the same file.
type origin struct {
	Commit string `json:"commit"`
	Go     string `json:"go"`
	// Digests are SHA-256 of each set: of its files, one after the other.
	Digests map[string]string `json:"digests"`
}

// mean is the mean of one engine on a group, or on a half of it.
type mean struct {
	Engine string `json:"engine"`
	Group  string `json:"group"`
	Half   string `json:"half"`
	N      int    `json:"n"`
	// None says that nothing fits these queries: there are no scores.
	None bool `json:"none,omitempty"`
	ireval.Scores
	// Refused is the share of queries that the engine says nothing fits to: wrongly, unless None is.
	Refused float64 `json:"refused"`
	// Answered is how many queries have a gold tool among the first five, Denied the share of them that the engine says nothing fits to.
	Answered int     `json:"answered,omitempty"`
	Denied   float64 `json:"denied,omitempty"`
	// Wrong is how many queries have none there, Flagged the share of them that the engine says nothing fits to.
	Wrong   int     `json:"wrong,omitempty"`
	Flagged float64 `json:"flagged,omitempty"`
	// Long is how many queries that nothing fits have at least longQuery words, LongRefused the share of them that
	// the engine says nothing fits to.
	Long        int     `json:"long,omitempty"`
	LongRefused float64 `json:"long_refused,omitempty"`
	// Reliability sorts the answers by their estimates.
	Reliability []bin `json:"reliability,omitempty"`
	// First is the tokens of an answer, Until those until a right tool is named; 0 where no one counted.
	First float64 `json:"first_tokens,omitempty"`
	Until float64 `json:"until_tokens,omitempty"`
}

// meansOf are the means of every engine, group and half.
func meansOf(rows []row, engines []string) (all []mean) {
	halves, _ := halvesOf("each")
	for _, engine := range engines {
		for _, group := range groups(rows) {
			for _, h := range halves {
				if chosen := choose(rows, engine, group, h); len(chosen) > 0 {
					all = append(all, meanOf(engine, group, h, chosen))
				}
			}
		}
	}
	return all
}

func meanOf(engine, group string, h half, rows []row) mean {
	m := mean{Engine: engine, Group: group, Half: h.name, N: len(rows), None: none(rows), Refused: roundScore(share(rows, weak)), Reliability: reliabilityOf(rows)}
	m.Answered, m.Denied = weakOf(rows, isAnswered)
	m.Wrong, m.Flagged = weakOf(rows, func(r row) bool { return !r.None && !isAnswered(r) })
	m.Long, m.LongRefused = weakOf(rows, func(r row) bool { return r.None && len(strings.Fields(r.Query)) >= longQuery })
	s := means(rows)
	m.Scores = ireval.Scores{Recall1: roundScore(s.Recall1), Recall3: roundScore(s.Recall3), Recall5: roundScore(s.Recall5), Recall10: roundScore(s.Recall10),
		NDCG10: roundScore(s.NDCG10), MRR: roundScore(s.MRR), Hit3: roundScore(s.Hit3), Hit5: roundScore(s.Hit5)}
	for _, r := range rows {
		m.First += float64(max(0, r.First)) / float64(len(rows))
		m.Until += float64(max(0, r.Until)) / float64(len(rows))
	}
	m.First, m.Until = roundScore(m.First), roundScore(m.Until)
	return m
}

// longQuery is the length of a long query, in words.
const longQuery = 19

// weakOf returns how many rows are so, and for which share of them the engine says that nothing fits.
func weakOf(rows []row, so func(row) bool) (n int, refused float64) {
	chosen := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !so(r) })
	return len(chosen), roundScore(share(chosen, weak))
}

// roundScore removes digits that depend on the order of additions.
func roundScore(f float64) float64 { return math.Round(f*1e6) / 1e6 }

func isAnswered(r row) bool { return !r.None && r.Scores.Hit5 > 0 }

func originOf(ctx context.Context, src sources) (origin, error) {
	o := origin{Commit: machine.Commit(ctx), Go: runtime.Version(), Digests: map[string]string{}}
	for name, patterns := range src.files() {
		digest, err := digestOf(patterns)
		if err != nil {
			return o, err
		}
		if digest != "" {
			o.Digests[name] = digest
		}
	}
	return o, nil
}

// files are the files of each set, as patterns.
func (src sources) files() map[string][]string {
	all := map[string][]string{
		"catalog": {filepath.Join(src.catalog, "*.json"), src.queries},
		"absent":  {src.absent()},
	}
	for _, name := range ireval.Names() {
		all[name] = []string{filepath.Join(src.retrieval, name, "tools.jsonl"), filepath.Join(src.retrieval, name, "queries.jsonl")}
	}
	return all
}

// digestOf is "" where the first of the files is missing.
func digestOf(patterns []string) (string, error) {
	sum := sha256.New()
	for i, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil || i == 0 && len(paths) == 0 {
			return "", err
		}
		for _, path := range paths { // in the order of their names
			data, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			sum.Write(data)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// head is what stands above the tables.
func (o origin) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# How well search finds the right tool (make bench-search); bench/search/README.md says what each column means.\n# commit %s, %s\n", o.Commit, o.Go)
	for _, name := range setNames() {
		digest := o.Digests[name]
		if digest == "" {
			digest = "not here"
		}
		fmt.Fprintf(&b, "# %-13s sha256 %s\n", name, digest)
	}
	return b.String() + "\n"
}

// keep writes the report, the means as lines of JSON below the origin, and the documents.
func (f flags) keep(ctx context.Context, report string, rows []row) error {
	o, err := originOf(ctx, f.sources)
	if err != nil {
		return err
	}
	all := meansOf(rows, strings.Split(f.engines, ","))
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	errs := []error{encoder.Encode(o)}
	for _, m := range all {
		errs = append(errs, encoder.Encode(m))
	}
	return errors.Join(append(errs,
		os.WriteFile(f.out+".txt", []byte(o.head()+trimLines(report)), 0o644),
		os.WriteFile(f.out+".jsonl", lines.Bytes(), 0o644),
		f.document(o, all))...)
}

// document writes the documents.
func (f flags) document(o origin, all []mean) error {
	if f.docs == "" {
		return nil
	}
	t, err := texts(o, all)
	if err != nil {
		return err
	}
	return errors.Join(t.Write(f.docs, pageName), writePlot(f.docs, all))
}

// rewrite makes the documents from FILE.jsonl, by default from the results that are kept.
func (f flags) rewrite() error {
	o, all, err := readMeans(cmp.Or(f.out, "bench/results/search") + ".jsonl")
	if err != nil {
		return err
	}
	f.docs = cmp.Or(f.docs, "docs/explanation")
	return f.document(o, all)
}

// readMeans reads what keep wrote.
func readMeans(path string) (o origin, all []mean, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return o, nil, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var m mean
		into := any(&m)
		if o.Go == "" {
			into = &o
		}
		if err := json.Unmarshal(lines.Bytes(), into); err != nil {
			return o, nil, fmt.Errorf("read %s: %w", path, err)
		}
		if into == any(&m) {
			all = append(all, m)
		}
	}
	return o, all, nil
}

// trimLines removes white space at the ends of lines.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}
