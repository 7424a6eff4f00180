package codegen

import "sallyport/internal/tool"

// Usual is the set of parameters, by wire name, that most tools of an upstream share,
// such as for retries or authentication. Optional ones are not specific to a tool, so
// they come last in its signature. nil is an empty set.
type Usual map[string]bool

// maxUsual is how many usual parameters a short signature names.
const maxUsual = 3

// Signature is [Signature] with the usual parameters last.
func (u Usual) Signature(t tool.Tool, lang Language) string {
	fn, _ := u.moveLast(model(t))
	text, _ := signature(t, fn, lang, maxParams, maxResult, 0)
	return text
}

// Brief is a shorter Signature: if there are many parameters, optional ones have no
// types. The usual ones never have types; if there are more than three, only their
// number is shown.
func (u Usual) Brief(t tool.Tool, lang Language) string {
	fn, usual := u.moveLast(model(t))
	text, _ := signature(t, fn, lang, briefParams, briefResult, usual)
	return text
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
