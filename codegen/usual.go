package codegen

import (
	"strings"

	"sallyport/internal/tool"
)

// Usual is the set of parameters, by wire name, that most tools of an upstream share,
// such as for retries or authentication. Optional ones are not specific to a tool, so
// they come last in its signature. nil is an empty set.
type Usual map[string]bool

// maxUsual is how many usual parameters a short signature names.
const maxUsual = 3

// Signature is [Signature] with the usual parameters last.
func (u Usual) Signature(t tool.Tool, lang Language) string {
	fn, _ := u.moveLast(model(t))
	text, whole := signature(t, fn, lang, maxParams, maxResult, 0)
	return text + omission(t.ID, fn, lang, text, maxParams, 0, whole)
}

// worthSpace is how much longer than a shortened signature a brief one may be if it leaves out nothing, in bytes.
const worthSpace = 40

// Brief is a shorter Signature: if there are many parameters, optional ones have no
// types. The usual ones never have types; if there are more than three, only their
// number is shown.
func (u Usual) Brief(t tool.Tool, lang Language) string {
	fn, usual := u.moveLast(model(t))
	text, whole := signature(t, fn, lang, briefParams, briefResult, usual)
	note := omission(t.ID, fn, lang, text, briefParams, usual, whole)
	if note == "" {
		return text
	}
	longer, whole := signature(t, fn, lang, maxParams, maxResult, usual)
	if len(longer) <= len(text)+len(note)+worthSpace && omission(t.ID, fn, lang, longer, maxParams, usual, whole) == "" {
		return longer
	}
	return text + note
}

// cutType replaces a nested type that a signature does not write out.
const cutType = "{...}"

// omission returns a comment with the query that shows what a signature omits of a nested type or of a required parameter,
// "" if it omits nothing of one.
func omission(id tool.ID, fn function, lang Language, text string, room, usual int, whole bool) string {
	if whole || !strings.Contains(text, cutType) && !omitsRequired(fn, lang, room, usual) {
		return ""
	}
	mark := "  # "
	if lang == TypeScript {
		mark = "  // "
	}
	return mark + `shortened: query "detail:full ` + id.Name + `"`
}

func omitsRequired(fn function, lang Language, room, usual int) bool {
	l := newParamList(fn, lang, room, usual)
	for i, p := range l.params {
		if p.cut && fn.params[i].required {
			return true
		}
	}
	return false
}

// moveLast moves the usual parameters to the end and counts them.
func (u Usual) moveLast(fn function) (_ function, usual int) {
	names, kept := map[string]string{}, fn
	for i, name := range pyParams(fn.params) {
		names[fn.params[i].name] = name
	}
	var first, last []field
	for _, f := range fn.params {
		if !f.required && u[f.name] {
			last = append(last, f)
		} else {
			first = append(first, f)
		}
	}
	fn.params = append(first, last...)
	for i, name := range pyParams(fn.params) {
		if names[fn.params[i].name] != name {
			return kept, 0 // two have the same Python name: the order decides which one is numbered
		}
	}
	return fn, len(last)
}
