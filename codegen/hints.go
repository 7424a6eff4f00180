package codegen

import (
	"encoding/json"
	"regexp"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	// maxHint bounds the hint about one parameter, in runes.
	maxHint = 90
	// maxExample bounds an example, in bytes.
	maxExample = 300
)

// formatWords matches descriptions of formats, units and dependencies, which a model that
// sees only names and types gets wrong.
var formatWords = regexp.MustCompile(`(?i)\b(format(ted)?|iso|rfc|e\.g|for example|comma|separated|delimited|seconds|ms|milliseconds|minutes|hours|days|` +
	`bytes|[kmg]i?b|pixels|px|percent(age)?|cents|epoch|unix|utc|gmt|time ?zone|regexp?|base64|encoded|absolute|relative|` +
	`must|either|mutually|only (if|when|with)|required (if|when|for|unless)|instead of|together with|cannot|not both|at (least|most)|` +
	`starts? with|prefix(ed)? with|in the form|case[- ]sensitive|lower ?case|upper ?case|[01]-based|inclusive|exclusive)\b`)

// sentenceEnd matches the end of a sentence, but not "e.g.".
var sentenceEnd = regexp.MustCompile(`[^.\s]{3,}\. `)

// looseNote matches notes about limits that values rarely violate.
var looseNote = regexp.MustCompile(`^(each )?(>= [01]( \w+)?|[01]\.\.\d{3,} characters|<= \d{2,} characters|pattern .*|default .*|unique items)$`)

// Hints returns constraints that the signature of a tool does not show: those on the
// arguments as a whole, then formats, units and ranges of single parameters, required
// ones first, without optional usual ones. Each is one line; together they have at most
// max bytes.
func (u Usual) Hints(t tool.Tool, lang Language, max int) (hints []string) {
	fn := model(t)
	add := func(hint string) bool {
		hint = sanitize.Line(hint, 2*maxHint)
		if max -= len(hint); max < 0 {
			return false
		}
		hints = append(hints, hint)
		return true
	}
	for _, note := range fn.notes {
		if !add(note) {
			return hints
		}
	}
	names := make([]string, len(fn.params))
	for i, f := range fn.params {
		names[i] = f.name
	}
	if lang == Python {
		names = pyParams(fn.params)
	}
	for i, f := range fn.params {
		if !f.required && u[f.name] {
			continue
		}
		if hint := f.doc.hint(); hint != "" && !add(names[i]+": "+hint) {
			return hints
		}
	}
	return hints
}

// hint returns the first informative sentence, and the notes that the type does not express.
func (d doc) hint() string {
	var parts []string
	for text := sanitize.Line(d.text, maxFieldDoc); text != ""; {
		sentence := text
		if end := sentenceEnd.FindStringIndex(text); end != nil {
			sentence = text[:end[1]]
		}
		text = text[len(sentence):]
		if formatWords.MatchString(sentence) {
			parts = append(parts, sanitize.Line(strings.TrimSuffix(strings.TrimSpace(sentence), "."), maxHint))
			break
		}
	}
	for _, note := range d.notes {
		if !looseNote.MatchString(note) {
			parts = append(parts, note)
		}
	}
	return strings.Join(parts, "; ")
}

// Example returns a call with the example values of the definition, or "" if it has
// none, or none for a required parameter:
//
//	create_issue(owner="octocat", repo="hello-world")
//	await create_issue({owner: "octocat", repo: "hello-world"})
func Example(t tool.Tool, lang Language) string {
	schema, err := decode(t.Input)
	root, ok := schema.(*object)
	if err != nil || !ok {
		return ""
	}
	values, given := examples(root)
	if !given {
		return ""
	}
	fn := model(t)
	names, parts := pyParams(fn.params), []string{}
	for i, f := range fn.params {
		value, known := values[f.name]
		switch {
		case !known && f.required:
			return ""
		case !known:
		case lang == TypeScript:
			parts = append(parts, strings.TrimSuffix(strings.TrimSuffix(string(tsMember(f)), ": "), "?")+": "+literalText(value, lang))
		default:
			parts = append(parts, names[i]+"="+literalText(value, lang))
		}
	}
	call := string(ident(t.ID.Name)) + "(" + strings.Join(parts, ", ") + ")"
	if lang == TypeScript {
		call = "await " + string(ident(t.ID.Name)) + "({" + strings.Join(parts, ", ") + "})"
	}
	if len(parts) == 0 || len(call) > maxExample || sanitize.Line(call, maxExample) != call {
		return ""
	}
	return call
}

// examples returns values for the members: those of an example of the whole object,
// else the example of each member, and for required members also the default, const
// or first enum value. given reports whether one of them is an example.
func examples(o *object) (values map[string]any, given bool) {
	values = map[string]any{}
	for _, whole := range append(o.List("examples"), o.Get("example")) {
		if example, ok := whole.(*object); ok && len(example.Keys()) > 0 {
			return example.Values(), true
		}
	}
	members := o.Object("properties")
	if members == nil {
		return values, false
	}
	for _, name := range members.Keys() {
		member, ok := members.Get(name).(*object)
		if !ok {
			continue
		}
		if list := member.List("examples"); len(list) > 0 {
			values[name], given = list[0], true
		} else if member.Has("example") {
			values[name], given = member.Get("example"), true
		}
	}
	for _, name := range o.Texts("required") {
		member, ok := members.Get(name).(*object)
		if _, known := values[name]; known || !ok {
			continue
		}
		switch {
		case member.Has("default"):
			values[name] = member.Get("default")
		case member.Has("const"):
			values[name] = member.Get("const")
		case len(member.List("enum")) > 0:
			values[name] = member.List("enum")[0]
		}
	}
	return values, given
}

// literalText returns a JSON value as a literal of the language.
func literalText(v any, lang Language) string {
	switch v := v.(type) {
	case string:
		if lang == TypeScript {
			return string(tsString(v))
		}
		return string(pyString(v))
	case json.Number:
		return string(digits(v.String()))
	case bool, nil:
		words := map[any]string{true: "True", false: "False", nil: "None"}
		if lang == TypeScript {
			words = map[any]string{true: "true", false: "false", nil: "null"}
		}
		return words[v]
	case []any:
		parts := make([]string, min(len(v), maxExample)) // with more it is too long
		for i := range parts {
			parts[i] = literalText(v[i], lang)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *object:
		var parts []string
		for _, name := range v.Keys()[:min(len(v.Keys()), maxExample)] {
			parts = append(parts, literalText(name, lang)+": "+literalText(v.Get(name), lang))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "..."
}
