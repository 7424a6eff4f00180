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
	text, whole := signature(t, fn, lang, maxParams, maxResult, 0)
	return text + omission(fn, lang, maxParams, 0, whole)
}

// Brief is a shorter Signature: if there are many parameters, optional ones have no
// types. The usual ones never have types; if there are more than three, only their
// number is shown.
func (u Usual) Brief(t tool.Tool, lang Language) string {
	fn, usual := u.moveLast(model(t))
	text, whole := signature(t, fn, lang, briefParams, briefResult, usual)
	return text + omission(fn, lang, briefParams, usual, whole)
}

// omission returns a comment on how to see what a signature omits of a required parameter, "" if it omits nothing of one.
func omission(fn function, lang Language, room, usual int, whole bool) string {
	if whole {
		return ""
	}
	l := newParamList(fn, lang, room, usual)
	for i, p := range l.params {
		if p.cut && fn.params[i].required {
			if lang == TypeScript {
				return `  // "...": detail="full"`
			}
			return `  # "...": detail="full"`
		}
	}
	return ""
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
