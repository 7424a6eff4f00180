package rules

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// fact is a value in a task. kind is quoted, number, date, path, url, email, repo or name.
type fact struct {
	kind, text string
	at, end    int
	used       bool
}

// facts are the values of a task, and the arguments of its request by their folded names.
type facts struct {
	task string
	all  []*fact
	args map[string]json.RawMessage
	// taken are the arguments that a parameter has.
	taken map[string]bool
}

var kinds = []struct {
	kind    string
	pattern *regexp.Regexp
}{
	{"url", regexp.MustCompile(`https?://[^\s"'<>]+[^\s"'<>.,;:!?)]`)},
	{"email", regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)},
	{"date", regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:?\d{2})?)?`)},
	{"path", regexp.MustCompile(`(?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+-]+)*/?|\b[\w.-]+(?:/[\w.-]+)*\.(?:txt|md|json|csv|py|ts|js|go|ya?ml|html|pdf|png|jpg|log|toml|xml)\b`)},
	{"repo", regexp.MustCompile(`\b[\w.-]+/[\w.-]+\b`)},
	{"name", regexp.MustCompile(`\b[A-Za-z]+[-_]\d+\b`)},
	{"number", regexp.MustCompile(`#?-?\b\d+(?:\.\d+)?\b`)},
	{"name", regexp.MustCompile(`\b[A-Z][\p{L}-]+(?: [A-Z][\p{L}-]+)*`)},
}

// facts finds the values of a task, each part of it once.
func (t text) facts(args map[string]json.RawMessage) *facts {
	f := &facts{task: t.whole, args: map[string]json.RawMessage{}, taken: map[string]bool{fold(ToolArg): true}}
	for name, value := range args {
		f.args[fold(name)] = value
	}
	for _, at := range quoted.FindAllStringSubmatchIndex(t.whole, 100) {
		for g := 2; g < len(at); g += 2 {
			if at[g] >= 0 {
				f.all = append(f.all, &fact{kind: "quoted", text: t.whole[at[g]:at[g+1]], at: at[0], end: at[1]})
			}
		}
	}
	for _, k := range kinds {
		for _, at := range k.pattern.FindAllStringIndex(t.whole, 100) {
			if f.free(at[0], at[1]) && !(k.kind == "name" && at[0] == 0) && !(k.kind == "path" && inWord(t.whole, at[0])) {
				f.all = append(f.all, &fact{kind: k.kind, text: strings.TrimRight(t.whole[at[0]:at[1]], "."), at: at[0], end: at[1]})
			}
		}
	}
	slices.SortFunc(f.all, func(a, b *fact) int { return a.at - b.at })
	return f
}

// inWord reports whether a place in a text that has a slash is inside of a word: the path /b of a/b is none.
func inWord(text string, at int) bool {
	return at > 0 && text[at] == '/' && !strings.ContainsRune(" \t\n\"'(=:,", rune(text[at-1]))
}

func (f *facts) free(from, to int) bool {
	return !slices.ContainsFunc(f.all, func(o *fact) bool { return from < o.end && to > o.at })
}

// of returns the unused values of some kinds.
func (f *facts) of(kinds ...string) (all []*fact) {
	for _, one := range f.all {
		if !one.used && slices.Contains(kinds, one.kind) {
			all = append(all, one)
		}
	}
	return all
}

// unused returns the values that no parameter has, but for names, which may belong to the sentence.
func (f *facts) unused() (all []string) {
	for _, one := range f.all {
		if !one.used && one.kind != "name" {
			all = append(all, one.text)
		}
	}
	for _, name := range sortedKeys(f.args) {
		if !f.taken[name] {
			all = append(all, name)
		}
	}
	return all
}

// before returns the words before a fact, the nearest last.
func (f *facts) before(one *fact) []string {
	return stems(f.task[max(0, one.at-60):one.at])
}

// fold makes names equal that differ in case and separators.
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
