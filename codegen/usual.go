package codegen

import "sallyport/internal/tool"

// Usual are parameters, by their names on the wire, that most tools of an upstream
// have: how to retry, how to log in. Where they may be missing they say nothing about
// one tool, so they stand last in its signature. nil is none.
type Usual map[string]bool

// maxUsual is how many usual parameters a short signature names.
const maxUsual = 3

// Signature is [Signature] with the usual parameters last.
func (u Usual) Signature(t tool.Tool, lang Language) string {
	fn, _ := u.last(model(t))
	text, _ := signature(t, fn, lang, maxParams, maxResult, 0)
	return text
}

// Brief is Signature in less room: of a tool with many parameters those that may
// be missing have no types, nor have the usual ones, and where those are more than
// three it has only their number.
func (u Usual) Brief(t tool.Tool, lang Language) string {
	fn, usual := u.last(model(t))
	text, _ := signature(t, fn, lang, briefParams, briefResult, usual)
	return text
}

// last moves the usual parameters to the end and counts them.
func (u Usual) last(fn function) (_ function, usual int) {
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
			return kept, 0 // two are written alike in Python, and which one has the number goes by the order
		}
	}
	return fn, len(last)
}
