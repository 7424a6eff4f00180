package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"sallyport/bench/doc"
)

// tally counts verdicts.
type tally map[verdict]int

func (t tally) all() int { return t[right] + t[taught] + t[unteaching] + t[silent] }

func count(list []outcome, is func(outcome) bool) tally {
	t := tally{}
	for _, o := range list {
		if is(o) {
			t[o.Verdict]++
		}
	}
	return t
}

// row is a line of the table.
type row struct {
	name string
	tally
}

// rows returns a line for each kind of mistake, in their order, and then the sums.
func rows(list []outcome) (all []row) {
	var kinds []string
	for _, o := range list {
		if !slices.Contains(kinds, o.Mistake) {
			kinds = append(kinds, o.Mistake)
		}
	}
	for _, kind := range kinds {
		all = append(all, row{kind, count(list, func(o outcome) bool { return o.Mistake == kind })})
	}
	for _, language := range []string{"python", "typescript"} {
		all = append(all, row{"all in " + language, count(list, func(o outcome) bool { return o.Language == language })})
	}
	if fixed := count(list, func(o outcome) bool { return o.AfterFix }); fixed.all() > 0 {
		all = append(all, row{"written after a fix", fixed})
	}
	return append(all, row{"all", count(list, func(outcome) bool { return true })})
}

// table returns the verdicts by kind of mistake as a table in Markdown.
func table(list []outcome) string {
	var b strings.Builder
	b.WriteString("| mistake | programs | right | taught | error that does not teach | silent wrong |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range rows(list) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", r.name, r.all(), r.tally[right], r.tally[taught], r.tally[unteaching], r.tally[silent])
	}
	return b.String()
}

// worst returns the share of good answers, and the names of the cases that are neither right nor taught.
func worst(list []outcome) string {
	t := count(list, func(outcome) bool { return true })
	var b strings.Builder
	if t.all() > 0 {
		fmt.Fprintf(&b, "right or taught: %.1f %%; tokens per answer: %d\n", 100*float64(t[right]+t[taught])/float64(t.all()), meanTokens(list))
	}
	if noted := filter(list, func(o outcome) bool { return o.Noted != "" }); len(noted) > 0 {
		fmt.Fprintf(&b, "with a note although right, of %d programs right at once or repaired: %s\n", t[right]+t[taught], names(noted))
	}
	for _, v := range []verdict{silent, unteaching} {
		if bad := filter(list, func(o outcome) bool { return o.Verdict == v }); len(bad) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", v, names(bad))
		}
	}
	return b.String()
}

func names(list []outcome) string {
	all := make([]string, len(list))
	for i, o := range list {
		all[i] = o.Name
	}
	return strings.Join(all, ", ")
}

func meanTokens(list []outcome) (mean int) {
	for _, o := range list {
		mean += o.Tokens
	}
	return mean / max(1, len(list))
}

// save writes the text, and the outcomes as lines of JSON.
func save(path, text string, list []outcome) error {
	if path == "" {
		return nil
	}
	var lines strings.Builder
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	for _, o := range list {
		if err := encoder.Encode(o); err != nil {
			return err
		}
	}
	title := "Programs as models write them, judged by their answers (make bench-firsttry)\n\n"
	if err := os.WriteFile(path+".txt", []byte(title+text), 0o644); err != nil {
		return err
	}
	return os.WriteFile(path+".jsonl", []byte(lines.String()), 0o644)
}

func writeDocs(folder string, list []outcome) error {
	if folder == "" {
		return nil
	}
	t := count(list, func(outcome) bool { return true })
	text := fmt.Sprintf("%s\nOf %d programs, %d are right at once, %d get an error or a note that leads to the right answer, %d get an error that\n"+
		"does not, and %d are wrong without a word.", table(list), t.all(), t[right], t[taught], t[unteaching], t[silent])
	return doc.Replace(folder+"/benchmarks.md", "firsttry", text)
}

func indent(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") }
