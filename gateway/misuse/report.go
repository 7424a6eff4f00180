// Package misuse finds where a program uses the results of tools in a way that they do not support: members that they do
// not have, texts taken for numbers, objects taken for texts, a first page taken for all. It compares the text of a
// program with the results that it got, so it needs no declared types. It finds only what can be told from the text:
// variables that always hold the same part of a result.
package misuse

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// Tool is a tool that a program called.
type Tool struct {
	tool.Tool
	// Calls are those that succeeded, in order.
	Calls []Call
}

// Call has the arguments of a call, and the value that the program got, both in JSON.
type Call struct{ Args, Value json.RawMessage }

// Finding is a use of a result that the result does not support.
type Finding struct {
	// Name is the member that the program takes, "" if it is about something else.
	Name string
	// Text says what is wrong, and what to do.
	Text string
}

// Run is a program that has ended.
type Run struct {
	// Code is in Python or, without types, in JavaScript.
	Code   string
	Python bool
	Tools  []Tool
	// Output is what the program printed and its value.
	Output string
	// Failed says that it ended with an error.
	Failed bool
}

const (
	maxFindings = 2
	maxKeys     = 8
)

// Find returns what a program does with results that they do not support, at most two findings.
func Find(r Run) (found []Finding) {
	shapes := map[string]*shape{}
	for _, t := range r.Tools {
		s, whole := t.shape()
		if _, twice := shapes[t.ID.Name]; twice || !whole {
			s = nil
		}
		shapes[t.ID.Name] = s
	}
	for function, s := range shapes {
		if s == nil {
			delete(shapes, function)
		}
	}
	if len(shapes) == 0 {
		return nil
	}
	p := newProgram(r.Code, r.Python, shapes)
	p.suspicious = r.Failed || suspicious.MatchString(r.Output)
	p.report = func(f Finding) {
		if len(found) < maxFindings && !slices.Contains(found, f) {
			found = append(found, f)
		}
	}
	p.chains(func(c chain) { p.bind(c); p.use(c) })
	p.callbacks()
	return found
}

// suspicious matches the output of a program that has probably found nothing.
var suspicious = regexp.MustCompile(`(?s)^\s*(?:(?:=> )?(?:undefined|null|None|NaN|0|\[\]|\{\}|""|''|unknown|nobody|none|false|False)?\s*)*$|\[object Object\]|\bundefined\b|\bNaN\b`)

// shape returns the shape of the results. whole is false if not all of them could be looked at.
func (t Tool) shape() (s *shape, whole bool) {
	schema, _ := t.ResultSchema()
	s, whole = &shape{at: t.ID.Name + "()", words: declared(schema)}, len(t.Calls) > 0
	for _, c := range t.Calls {
		whole = s.add(c.Value) && whole
	}
	return s, whole
}

func (p *program) add(f Finding) {
	if p.report != nil {
		p.report(f)
	}
}

// usual are members that a careful program looks for although no result has them.
var usual = regexp.MustCompile(`(?i)^(_*(is_?)?errors?|message|ok|success|warnings?|length|size|constructor|toString|toJSON|then|catch|__\w+__)$|next|cursor|token|more|page`)

// missing reports a member that no result has; next is the index after it.
func (p *program) missing(c chain, key string, next int) {
	s := c.shape
	if p.report == nil || usual.MatchString(key) || s.words[key] || p.guards || p.alternative(c.start, next) {
		return
	}
	switch {
	case s.only(isList):
		p.add(Finding{key, fmt.Sprintf("%s is a list%s, it has no %s", s.at, s.elem.items(), quoted(key))})
	case s.only(isText):
		p.add(Finding{key, fmt.Sprintf("%s is text (%s): split it", s.at, quoted(sanitize.Line(s.sample, 30)))})
	case s.only(isObject) && len(s.members) > 0:
		p.missingKey(s, key)
	}
}

func (p *program) missingKey(s *shape, key string) {
	near := similar(key, s.keys())
	told := fmt.Sprintf("%s has no %s", s.at, quoted(key))
	switch {
	case near != "":
		p.add(Finding{key, told + ": " + near})
	case s.words != nil || p.suspicious:
		p.add(Finding{key, told + ", only " + list(s.keys())})
	}
}

// items describes the items of a list.
func (s *shape) items() string {
	if s.only(isObject) {
		return " of {" + list(s.keys()) + "}"
	}
	return ""
}

// alternative reports whether an expression is one of several that the program tries.
func (p *tokenized) alternative(start, next int) bool {
	isTried := func(i int) bool {
		return p.kind(i) == name && !p.is(i, "None", "null", "undefined", "new", "False", "false")
	}
	if p.is(next, "??", "||", "or") && isTried(next+1) {
		return true
	}
	return p.is(start-1, "??", "||", "or")
}

// similar returns the key that was probably meant: one with the same words, or with all of them.
func similar(word string, keys []string) string {
	if form := suggest.Form(word, keys); form != "" {
		return form
	}
	for _, key := range keys {
		a, b := wordsOf(word), wordsOf(key)
		if within(a, b) || within(b, a) {
			return key
		}
	}
	return ""
}

var wordPattern = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+|[0-9]+`)

func wordsOf(key string) (list []string) {
	for _, w := range wordPattern.FindAllString(key, 20) {
		if w = strings.ToLower(w); w != "to" && w != "of" && w != "at" {
			list = append(list, w)
		}
	}
	return list
}

// within reports whether all words of a, at least one, are among those of b, perhaps in another form.
func within(a, b []string) bool {
	return len(a) > 0 && !slices.ContainsFunc(a, func(w string) bool {
		return !slices.ContainsFunc(b, func(other string) bool { return sameStem(w, other) })
	})
}

// sameStem reports whether words differ in their endings only: comment and comments, assigned and assignee.
func sameStem(a, b string) bool {
	if a == b {
		return true
	}
	stem := 0
	for stem < min(len(a), len(b)) && a[stem] == b[stem] {
		stem++
	}
	return stem >= 4 && max(len(a), len(b))-stem <= 3
}

func list(keys []string) string {
	shown := make([]string, 0, maxKeys)
	for _, key := range keys[:min(len(keys), maxKeys)] {
		shown = append(shown, sanitize.Line(key, 40))
	}
	if len(keys) > maxKeys {
		shown = append(shown, "...")
	}
	return strings.Join(shown, ", ")
}

func quoted(s string) string { return fmt.Sprintf("%q", sanitize.Line(s, 60)) }
