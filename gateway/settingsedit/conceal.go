package settingsedit

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sallyport/internal/redact"
	"sallyport/internal/tool"
)

// placeholder matches what stands for a secret in the text of a part.
var placeholder = regexp.MustCompile(`\(hidden-([0-9]{1,4})\)`)

// concealed are the secrets of a part, in the order of their placeholders, which begin with 1. A part has a pointer to it, so that a
// part that is printed shows no secret.
type concealed []span

// span is a secret in a text, with the path of the keys of its value there.
type span struct {
	start, end   int
	path, secret string
}

// conceal replaces the secrets in the text of a part by placeholders.
func conceal(text string) (string, concealed, error) {
	if placeholder.MatchString(text) {
		return "", nil, notConcealed("it has the text " + placeholder.FindString(text))
	}
	found, scalars, err := find(text)
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	at := 0
	for i, s := range found {
		fmt.Fprintf(&b, "%s(hidden-%d)", text[at:s.start], i+1)
		at = s.end
	}
	shown := b.String() + text[at:]
	if !found.explains(shown, scalars) {
		return "", nil, notConcealed("a secret has more than one line, or escapes")
	}
	return shown, found, nil
}

func notConcealed(why string) error {
	return &tool.Error{Kind: tool.Failed, Message: "this part of the settings cannot be shown without its secrets: " + why, Hint: "edit the file itself, where ${VARIABLE} can replace a secret"}
}

// find returns where the secrets of a text are, in order, and its values.
func find(text string) (concealed, []scalar, error) {
	scalars, err := scalarsOf(text)
	if err != nil {
		return nil, nil, notConcealed("it is not YAML of its own")
	}
	known := secretsOfComments(text)
	for _, one := range scalars {
		known = append(known, strong(one.secrets)...)
	}
	var found concealed
	for i := range scalars {
		one := &scalars[i]
		one.secrets = linesOf(append(one.secrets, known...))
		found = append(found, one.spans(text)...)
	}
	return merged(append(found, spansOf(text, 0, -1, inComments, linesOf(known))...)), scalars, nil
}

// linesOf returns the lines of secrets, the longest first.
func linesOf(secrets []string) (lines []string) {
	for _, s := range secrets {
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
	}
	slices.SortFunc(lines, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(lines)
}

// spans returns where the secrets of a value are in a text.
func (s scalar) spans(text string) (all []span) {
	for _, secret := range s.secrets {
		all = append(all, spansOf(text, s.Offset, strings.Count(s.Value, secret), s.path(), []string{secret})...)
	}
	return all
}

// spansOf returns the first n places of each secret from an offset on, all for -1.
func spansOf(text string, begin, n int, path string, secrets []string) (all []span) {
	for _, secret := range secrets {
		for at, i := begin, 0; i != n; i++ {
			next := strings.Index(text[at:], secret)
			if next < 0 {
				break
			}
			all = append(all, span{at + next, at + next + len(secret), path, secret})
			at += next + len(secret)
		}
	}
	return all
}

// merged returns spans in order, without those in a longer one, or in one of a value at the same place.
func merged(all []span) (kept concealed) {
	slices.SortStableFunc(all, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	end := 0
	for _, s := range all {
		if s.start >= end {
			kept, end = append(kept, s), s.end
		}
	}
	return kept
}

// explains reports whether a text with placeholders has the values of the part, and no secret.
func (c concealed) explains(shown string, scalars []scalar) bool {
	now, err := scalarsOf(shown)
	return err == nil && slices.EqualFunc(now, scalars, func(a, b scalar) bool {
		rest := placeholder.ReplaceAllString(a.Value, "\x00")
		return c.same(a, b) && !slices.ContainsFunc(b.secrets, func(secret string) bool { return strings.Contains(rest, secret) })
	})
}

// same reports whether a value with placeholders is another one, with the secrets.
func (c concealed) same(shown, real scalar) bool {
	return shown.path() == real.path() && c.reveal(shown.Value) == real.Value
}

// reveal replaces the placeholders in a text by the secrets that they stand for.
func (c concealed) reveal(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(mark string) string {
		if n := numberOf(mark); n >= 1 && n <= len(c) {
			return c[n-1].secret
		}
		return mark
	})
}

func numberOf(mark string) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(mark, "(hidden-"), ")"))
	return n
}

// restore puts the secrets back into an edited text: each only where the part has it, and so that it is hidden again.
func (c concealed) restore(draft string) (string, []Problem) {
	marks := placeholder.FindAllStringIndex(draft, -1)
	if len(marks) == 0 {
		return draft, nil
	}
	shown, err := scalarsOf(draft)
	if err != nil {
		return draft, nil // loading it says why, and shows no secret
	}
	if wrong := c.misplaced(draft, marks, shown); wrong != nil {
		return "", wrong
	}
	var b strings.Builder
	var put []span
	at := 0
	for _, mark := range marks {
		b.WriteString(draft[at:mark[0]])
		start := b.Len()
		b.WriteString(c.reveal(draft[mark[0]:mark[1]]))
		put, at = append(put, span{start: start, end: b.Len()}), mark[1]
	}
	text := b.String() + draft[at:]
	again, scalars, err := find(text)
	for i, s := range put {
		covered := func(o span) bool { return o.start <= s.start && s.end <= o.end }
		if err != nil || !slices.ContainsFunc(again, covered) {
			return "", []Problem{c.problem(draft, marks[i], "cannot stand here like this, as the secret would no longer be hidden")}
		}
	}
	if !slices.EqualFunc(shown, scalars, c.same) {
		return "", []Problem{c.problem(draft, marks[0], "must keep the quotes that it was shown in")}
	}
	return text, nil
}

// misplaced returns the problem of the first placeholder that is not at the key of its secret.
func (c concealed) misplaced(draft string, marks [][]int, shown []scalar) []Problem {
	paths := pathsOf(draft, shown)
	for _, mark := range marks {
		text := draft[mark[0]:mark[1]]
		switch n := numberOf(text); {
		case n < 1 || n > len(c):
			return []Problem{c.problem(draft, mark, "stands for no secret of this part")}
		case slices.ContainsFunc(paths[text], func(path string) bool { return path != c[n-1].path }):
			return []Problem{c.problem(draft, mark, "stands for the secret of another key")}
		}
	}
	return nil
}

// pathsOf returns the paths at which each placeholder stands in a text.
func pathsOf(draft string, shown []scalar) map[string][]string {
	all := map[string][]string{}
	for _, one := range shown {
		for _, mark := range placeholder.FindAllString(one.Value, -1) {
			all[mark] = append(all[mark], one.path())
		}
	}
	for mark, n := range countMarks(draft) {
		if n > len(all[mark]) {
			all[mark] = append(all[mark], inComments)
		}
	}
	return all
}

func countMarks(text string) map[string]int {
	counts := map[string]int{}
	for _, mark := range placeholder.FindAllString(text, -1) {
		counts[mark]++
	}
	return counts
}

// problem is that of a placeholder in a draft.
func (c concealed) problem(draft string, mark []int, why string) Problem {
	before := draft[:mark[0]]
	begin := strings.LastIndexByte(before, '\n') + 1
	return Problem{
		Line: strings.Count(before, "\n") + 1, Column: utf8.RuneCountInString(before[begin:]) + 1,
		Message: draft[mark[0]:mark[1]] + " " + why + ". Type the value, or ${VARIABLE}.",
	}
}

// column returns the column in a line with placeholders of one in the line with the secrets.
func (c concealed) column(shown string, column int) int {
	longer := 0
	for _, mark := range placeholder.FindAllStringIndex(shown, -1) {
		text := shown[mark[0]:mark[1]]
		begin := utf8.RuneCountInString(shown[:mark[0]]) + longer
		secret := utf8.RuneCountInString(c.reveal(text))
		if column <= begin {
			break
		}
		if column <= begin+secret {
			return begin - longer + 1
		}
		longer += secret - len(text)
	}
	return column - longer
}

// hide replaces secrets in a message.
func (c concealed) hide(message string) string {
	for _, s := range c {
		if len(s.secret) >= redact.Shortest {
			message = strings.ReplaceAll(message, s.secret, redact.Hidden)
		}
	}
	return message
}
