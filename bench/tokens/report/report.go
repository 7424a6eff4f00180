package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/bench/doc"
)

// Name is the name of the sections and of the page that are made from the results.
const Name = "tokens"

// Texts returns what is written into the documents.
func (r *Results) Texts() doc.Texts {
	return doc.Texts{Losses: r.Losses(), Summary: r.Short(), Tables: r.Markdown()}
}

// Text is all tables, for people at a terminal.
func (r *Results) Text() string {
	var b strings.Builder
	b.WriteString(r.with())
	if wrong := r.warning(); wrong != "" {
		b.WriteString("\n" + strings.ReplaceAll(wrong, "**", "") + "\n")
	}
	b.WriteString("\n" + r.Losses() + "\n" + r.short(Encoding).text())
	if len(r.Levels.Rows) > 0 {
		b.WriteString("\n" + r.Levels.Text())
	}
	for _, encoding := range r.Encodings {
		fmt.Fprintf(&b, "\nAll that follows is in tokens of %s.\n", encoding)
		for _, t := range append([]*table{sections{r}.servers(encoding)}, r.tables(encoding, r.sizes())...) {
			b.WriteString("\n" + t.text())
		}
	}
	return b.String()
}

// Losses returns where code mode costs more than another mode, as a list.
func (r *Results) Losses() string { return strings.Join(r.lossFindings(Encoding), "\n") }

// Short returns the summary: what code mode saves, and one plot.
func (r *Results) Short() string {
	var b strings.Builder
	if wrong := r.warning(); wrong != "" {
		b.WriteString(wrong + "\n\n")
	}
	b.WriteString(r.short(Encoding).markdown())
	plot := drawing{r}.pictures()[0]
	fmt.Fprintf(&b, "\n![%s](benchmarks/%s)", plot.about, plot.name)
	return b.String()
}

// warning returns a warning if the results have wrong answers.
func (r *Results) warning() string {
	wrong, of := r.Wrong()
	if wrong == 0 {
		return ""
	}
	return fmt.Sprintf("**%d of %d counts have no right answer; these results are unreliable.**", wrong, of)
}

// Markdown returns all tables, and the other plots.
func (r *Results) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s at commit %s: %s tasks, each in three modes with %s servers. %s\n",
		r.Date, cmp.Or(r.Versions["commit"], "unknown"), number(len(r.everyTask())), numbers(r.sizes()), strings.TrimSpace(r.wrong(Encoding)[0]+" "+r.Note))
	for _, p := range (drawing{r}).pictures()[1:] {
		fmt.Fprintf(&b, "\n![%s](%s)\n", p.about, p.name)
	}
	for _, t := range r.tables(Encoding, sections{r}.pageSizes()) {
		b.WriteString("\n" + t.markdown())
	}
	b.WriteString("\n" + sections{r}.servers(Encoding).markdown())
	if len(r.Levels.Rows) > 0 {
		b.WriteString("\n" + r.Levels.table(false).markdown())
	}
	return strings.TrimSpace(b.String())
}

// tables has what loses first: small tasks, then all.
func (r *Results) tables(encoding string, sizes []int) []*table {
	list := []*table{sections{r}.definitionsTable(encoding), legendOf()}
	for _, n := range sizes {
		list = append(list, sections{r}.perTask(n, encoding))
	}
	list = append(list, sections{r}.sums(encoding), sections{r}.byKind(encoding, sizes), r.losses(encoding), sections{r}.dearerTable(encoding))
	if slices.Contains(r.sizes(), 5) {
		list = append(list, sections{r}.breakEven(5, encoding))
	}
	return append(list, r.failures(encoding))
}

func (r *Results) sizes() (list []int) {
	for _, s := range r.Sizes {
		list = append(list, s.Servers)
	}
	return list
}

func (r *Results) everyTask() (names []string) {
	for _, l := range r.Lines {
		if !slices.Contains(names, l.Task) {
			names = append(names, l.Task)
		}
	}
	return names
}

func numbers(list []int) string {
	var texts []string
	for _, n := range list {
		texts = append(texts, number(n))
	}
	return joinWords(texts)
}

// with is what it was measured with.
func (r *Results) with() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Tokens of tasks, by mode and number of servers (make bench-tokens)\n# %s, took %s, %d x %s, Linux %s, world in %s\n", r.Date, r.Took, r.Cores, r.CPU, r.Kernel, r.Folder)
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		fmt.Fprintf(&b, "# %s %s", name, r.Versions[name])
		if digest := r.Digests[name]; digest != "" {
			fmt.Fprintf(&b, ", %.30s", digest)
		}
		b.WriteByte('\n')
	}
	if r.Note != "" {
		fmt.Fprintf(&b, "# %s\n", r.Note)
	}
	return b.String()
}
