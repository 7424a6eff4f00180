package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Section is the name of the section of the page that is ours.
const Section = "tokens"

// Text is all tables, for people at a terminal.
func (r *Results) Text() string {
	var b strings.Builder
	b.WriteString(r.with())
	if len(r.Levels.Rows) > 0 {
		b.WriteString("\n" + r.Levels.Text())
	}
	for _, encoding := range r.Encodings {
		fmt.Fprintf(&b, "\nAll that follows is in tokens of %s.\n", encoding)
		for _, t := range r.tables(encoding, r.sizes()) {
			b.WriteString("\n" + t.text())
		}
	}
	return b.String()
}

// Markdown is the section of the page.
func (r *Results) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, at commit %s, %s tasks, each in three modes with %s servers. %s %s\n\n",
		r.Date, cmp.Or(r.Versions["commit"], "unknown"), number(len(r.everyTask())), numbers(r.sizes()), r.wrong(Encoding)[0], r.Note)
	b.WriteString("![Tokens of a task over the number of tools](benchmarks/tokens.svg)\n\n![Tokens of each task](benchmarks/tasks.svg)\n")
	for _, t := range r.tables(Encoding, r.paged()) {
		b.WriteString("\n" + t.markdown())
	}
	if len(r.Levels.Rows) > 0 {
		b.WriteString("\n" + r.Levels.table(false).markdown())
	}
	return strings.TrimSpace(b.String())
}

// tables has what loses first: small tasks, then all.
func (r *Results) tables(encoding string, sizes []int) []*table {
	list := []*table{r.shown(encoding), legendOf()}
	if slices.Contains(r.sizes(), 1) && !slices.Contains(sizes, 1) {
		sizes = append([]int{1}, sizes...)
	}
	for _, n := range sizes {
		list = append(list, r.perTask(n, encoding))
	}
	list = append(list, r.sums(encoding), r.byKind(encoding, sizes), r.losses(encoding))
	if slices.Contains(r.sizes(), 5) {
		list = append(list, r.breakEven(5, encoding))
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
	return listed(texts)
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
