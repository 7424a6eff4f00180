package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/bench/suite"
)

// losses says where code mode loses.
func (r *Results) losses(encoding string) *table {
	t := &table{
		title: "Where code mode loses",
		note:  "Tasks that cost more in code mode than in the other mode, or that code mode answers wrong, of those that the other mode answers correctly in a context that fits.",
		head:  []string{"servers", "counted", "than direct", "than tool search", "which, than direct", "which, than tool search"},
	}
	for _, s := range r.Sizes {
		for _, w := range weighings() {
			row, which := []string{number(s.Servers), w.name}, []string{}
			for _, other := range []string{direct, search} {
				names, of := r.loses(other, s.Servers, encoding, w)
				row, which = append(row, fmt.Sprintf("%d of %d", len(names), of)), append(which, strings.Join(names, ", "))
			}
			t.add(append(row, which...)...)
		}
	}
	return t
}

// listSuffix returns a list after a colon, or the end of the sentence.
func listSuffix(names []string) string {
	if len(names) == 0 {
		return "."
	}
	return ": " + strings.Join(names, ", ") + "."
}

// failures says what went wrong: answers, contexts, searches and calls.
func (r *Results) failures(encoding string) *table {
	var b strings.Builder
	for _, text := range [][]string{r.wrong(encoding), r.searchSummary(encoding), r.large(encoding), r.repeatedSearches(encoding), r.failedCalls(encoding)} {
		for _, line := range text {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	return &table{title: "Failures and retries", note: strings.TrimSpace(b.String())}
}

// wrong says how much was played and counted, and what came out wrong.
func (r *Results) wrong(encoding string) (lines []string) {
	n, right := 0, 0
	for _, l := range r.Lines {
		if l.Encoding != encoding {
			continue
		}
		n++
		if l.Correct {
			right++
			continue
		}
		lines = append(lines, fmt.Sprintf("Wrong: %s, %s, %s: %s", l.Task, nameOf(l.Mode), count(l.Servers, "server"), l.Error))
	}
	return append([]string{fmt.Sprintf("%s plays, %s counts (a play by direct calls counts at each size; of two plays with a tool search the better one counts); %s answers are right.", number(r.Plays), number(n), number(right))}, lines...)
}

// Wrong is how many counts have no right answer, of how many.
func (r *Results) Wrong() (wrong, of int) {
	for _, l := range r.Lines {
		if l.Encoding != Encoding {
			continue
		}
		if of++; !l.Correct {
			wrong++
		}
	}
	return wrong, of
}

// searchSummary returns how many tools a tool search showed.
func (r *Results) searchSummary(encoding string) []string {
	finds := map[int]int{}
	n := 0
	for _, l := range r.Lines {
		if l.Mode == search && l.Encoding == encoding && l.Finds > 0 {
			finds[l.Finds]++
			n++
		}
	}
	if n == 0 {
		return nil
	}
	var parts []string
	for _, shows := range slices.Sorted(maps.Keys(finds)) {
		parts = append(parts, fmt.Sprintf("%d tools a search in %d", shows, finds[shows]))
	}
	return []string{fmt.Sprintf("Tool search showed %s, of %d counts: whichever was cheaper.", joinWords(parts), n)}
}

// large are the contexts that do not fit a window.
func (r *Results) large(encoding string) (lines []string) {
	for _, s := range r.Sizes {
		for _, mode := range suite.Modes() {
			names, of, peak := r.tooLarge(string(mode), s.Servers, encoding)
			if len(names) == 0 {
				continue
			}
			which := listSuffix(names)
			if len(names) == of {
				which = fmt.Sprintf(", all of %d.", of)
			}
			lines = append(lines, fmt.Sprintf("%s, %s: contexts of up to %s tokens do not fit %s: %d%s", nameOf(string(mode)), count(s.Servers, "server"), number(peak), number(Window), len(names), which))
		}
	}
	return lines
}

func (r *Results) tooLarge(mode string, servers int, encoding string) (names []string, of, peak int) {
	for _, task := range r.tasks(servers) {
		l := r.of(task, mode, servers, encoding)
		if l == nil {
			continue
		}
		of++
		if peak = max(peak, l.Peak); l.Peak > Window {
			names = append(names, task)
		}
	}
	return names, of, peak
}

// repeatedSearches returns the searches that needed a second try.
func (r *Results) repeatedSearches(encoding string) (lines []string) {
	return r.perMode(encoding, "Searched more than once", func(l Line) string {
		if l.Tries < 2 {
			return ""
		}
		return fmt.Sprintf("%d tries", l.Tries)
	})
}

// failedCalls returns the calls and programs that ended with an error, which all counts include.
func (r *Results) failedCalls(encoding string) (lines []string) {
	return r.perMode(encoding, "Calls that failed, and are counted", func(l Line) string {
		if l.Failed == 0 {
			return ""
		}
		return fmt.Sprintf("%s, %s tokens", count(l.Failed, "call"), number(l.Wasted))
	})
}

// perMode is a line for each mode with what is said of its tasks, and at which sizes.
func (r *Results) perMode(encoding, title string, of func(Line) string) (lines []string) {
	for _, mode := range suite.Modes() {
		where := map[string][]string{}
		for _, l := range r.Lines {
			if text := of(l); text != "" && l.Encoding == encoding && l.Mode == string(mode) {
				where[l.Task+" ("+text] = append(where[l.Task+" ("+text], fmt.Sprint(l.Servers))
			}
		}
		var parts []string
		for _, what := range slices.Sorted(maps.Keys(where)) {
			parts = append(parts, fmt.Sprintf("%s; servers: %s)", what, strings.Join(where[what], ", ")))
		}
		if len(parts) > 0 {
			lines = append(lines, fmt.Sprintf("%s, %s: %s.", title, nameOf(string(mode)), strings.Join(parts, ", ")))
		}
	}
	return lines
}
