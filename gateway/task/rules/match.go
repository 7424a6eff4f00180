package rules

import (
	"encoding/json"
	"slices"
	"strings"

	"sallyport/internal/tool"
)

// match is how well a tool fits a task.
type match struct {
	tool  tool.Tool
	score float64
	// named says that the task or an argument names the tool.
	named bool
	// class is the class of its verb, "" for none; words are the stems of its name.
	class string
	words []string
}

// rank returns the tools that fit, the best first.
func rank(t text, r Request) (all []match) {
	var named string
	_ = json.Unmarshal(r.Args[ToolArg], &named) // "" without it
	for _, c := range r.Tools {
		if m, ok := fit(t, c, named); ok {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b match) int {
		if a.named != b.named {
			return map[bool]int{true: -1, false: 1}[a.named]
		}
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return strings.Compare(a.tool.ID.String(), b.tool.ID.String())
	})
	return all
}

// fit compares a tool with a task. The nouns of its name must be in the task, and its verb must be of the same class.
func fit(t text, c Candidate, named string) (match, bool) {
	m := match{tool: c.Tool, words: nameWords(c.Tool)}
	m.named = named == c.Tool.ID.String() || named == "" && mentions(t.whole, c.Tool)
	nouns := m.words[:0:0]
	for _, w := range m.words {
		if class(w) != "" && m.class == "" {
			m.class = class(w)
			continue
		}
		nouns = append(nouns, w)
	}
	if m.named {
		m.score = 10
		return m, true
	}
	asked := t.class()
	verb := agree(asked, m.class)
	if verb == 1 && slices.ContainsFunc(m.words, func(w string) bool { return class(w) == m.class && slices.Contains(t.words, w) }) {
		verb += 0.2 // the very word
	}
	cover := covered(nouns, t.words)
	there := cover >= 0.99
	if len(nouns) == 0 {
		there = slices.Contains(t.words, m.words[0])
	}
	if named != "" || verb < 0 || !there {
		return m, false
	}
	m.score = verb + extra(t, c.Tool, m.words) + 0.25/float64(1+c.Rank) + 0.2*float64(len(nouns))
	return m, true
}

// nameWords returns the stems of a tool's name, without the name of its upstream at the front.
func nameWords(t tool.Tool) []string {
	words, up := stems(t.ID.Name), stems(t.ID.Upstream)
	for len(words) > 1 && len(up) > 0 && words[0] == up[0] {
		words, up = words[1:], up[1:]
	}
	return words
}

// mentions reports whether a task has the tool's name as it is: more than one word, or with its upstream.
func mentions(task string, t tool.Tool) bool {
	lower := strings.ToLower(task)
	name := strings.ToLower(t.ID.Name)
	return strings.Contains(lower, strings.ToLower(t.ID.String())) || strings.ContainsAny(name, "_-") && strings.Contains(lower, name)
}

// class returns the class of the task's first verb, which is near its beginning; "" without one.
func (t text) class() string {
	for _, w := range t.words[:min(len(t.words), 8)] {
		if c := class(w); c != "" {
			return c
		}
	}
	return ""
}

// agree scores two classes of verbs; less than 0 is a contradiction.
func agree(asked, has string) float64 {
	switch {
	case asked == has && has != "":
		return 1
	case asked == "" && (has == "read" || has == ""):
		return 0.4
	case has == "" && asked != "":
		return 0.3
	}
	return -1
}

// covered returns the part of nouns that are in the task.
func covered(nouns, task []string) float64 {
	n := 0
	for _, w := range nouns {
		if stop[w] != "" || slices.Contains(task, w) {
			n++
		}
	}
	return float64(n) / float64(max(len(nouns), 1))
}

// extra scores the words of the task that the tool's name, upstream, parameters or first sentence have.
func extra(t text, of tool.Tool, words []string) float64 {
	known := slices.Concat(words, stems(of.ID.Upstream), stems(strings.Join(keysOf(of), " ")), stems(firstSentence(of.Description)))
	hit, all := 0, 0
	seen := map[string]bool{}
	for _, w := range t.words {
		if stop[w] != "" || class(w) != "" || seen[w] {
			continue
		}
		seen[w] = true
		all++
		if slices.Contains(known, w) {
			hit++
		}
		if slices.Contains(stems(of.ID.Upstream), w) {
			hit++
		}
	}
	return float64(hit) / float64(max(all, 1))
}

func firstSentence(s string) string {
	s, _, _ = strings.Cut(s, ". ")
	s, _, _ = strings.Cut(s, "\n")
	return s[:min(len(s), 300)]
}
