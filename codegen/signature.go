package codegen

import (
	"strconv"
	"strings"

	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

const (
	// maxParams and maxResult bound the two halves of a signature, in bytes.
	maxParams = 500
	maxResult = 250
	// maxSignature bounds the whole whatever is in it, in runes.
	maxSignature = 1400
)

// Import returns the line that makes a tool's wrapper known to a program.
func Import(id tool.ID, lang Language) string {
	up, name := string(ident(id.Upstream)), string(ident(id.Name))
	if lang == TypeScript {
		return "import { " + name + ` } from "servers/` + up + `"`
	}
	return "from servers." + up + " import " + name
}

// Signature returns how a tool is called and what comes back, on one line, with
// nested types written out as far as there is room and "..." for the rest:
//
//	memory.open_nodes(names: list[str], *, depth: int = 1) -> {entities: list[{name: str}]}
//	memory.open_nodes({names: string[], depth?: number}): Promise<{entities: {name: string}[]}>
//
// It has at most 1,400 runes.
func Signature(t tool.Tool, lang Language) string {
	text, _ := signature(t, model(t), lang)
	return text
}

func signature(t tool.Tool, fn function, lang Language) (text string, whole bool) {
	params, whole := parameterList(fn, lang)
	result, wholeResult := inlineType(fn.result, lang, maxResult)
	name := string(ident(t.ID.Upstream) + "." + ident(t.ID.Name))
	if lang == TypeScript {
		text = name + "(" + params + "): Promise<" + result + ">"
	} else {
		text = name + "(" + params + ") -> " + result
	}
	return plain.Line(text, maxSignature), whole && wholeResult
}

// parameterList writes the parameters as deep as they fit; if not even the
// flattest way fits, the last ones stand without their types.
func parameterList(fn function, lang Language) (text string, whole bool) {
	for level := maxLevel; level >= 0; level-- {
		s := sigList{fn: fn, lang: lang, level: level}
		if s.write(len(fn.params)); !s.over && len(s.text()) <= maxParams {
			return s.text(), !s.cut
		}
	}
	s := sigList{fn: fn, lang: lang}
	s.write(s.fitting())
	return s.text(), false
}

// sigList is one try to write the parameters.
type sigList struct {
	fn    function
	lang  Language
	level int
	parts []string
	// cut says that something is not written out, over that a type was too long to be.
	cut, over bool
}

// fitting is how many parameters fit with their types: the required ones in any
// case, up to twice the room.
func (s *sigList) fitting() int {
	size := 0
	for i, f := range s.fn.params {
		size += len(s.param(f, f.name)) + 2
		if room := maxParams; !f.required && size > room || size > 2*room {
			return i
		}
	}
	return len(s.fn.params)
}

// write writes the first n parameters with their types, of the others as many names as fit.
func (s *sigList) write(n int) {
	names := pyParams(s.fn.params)
	star, size := s.lang == TypeScript, 0
	s.parts = nil
	for i, f := range s.fn.params {
		if !f.required && !star {
			s.parts, star = append(s.parts, "*"), true
		}
		part := s.param(f, names[i])
		if i >= n {
			part, s.cut = s.bare(f, names[i]), true
		}
		if size += len(part) + 2; i >= n && size > 2*maxParams {
			s.parts = append(s.parts, "... "+strconv.Itoa(len(names)-i)+" more")
			break
		}
		s.parts = append(s.parts, part)
	}
	if s.fn.extra != nil {
		s.parts = append(s.parts, s.extra(names))
	}
}

// bare is a parameter without its type.
func (s *sigList) bare(f field, pyName string) string {
	switch {
	case s.lang == TypeScript:
		return strings.TrimSuffix(string(tsMember(f)), ": ")
	case f.required:
		return pyName
	}
	return pyName + "=..."
}

func (s *sigList) extra(names []string) string {
	text := s.inline(s.fn.extra)
	if s.lang == TypeScript {
		return "[key: string]: " + text
	}
	return "**" + free("extra", stringSet(names)) + ": " + text
}

func (s *sigList) param(f field, pyName string) string {
	if s.lang == TypeScript {
		return string(tsMember(f)) + s.inline(f.typ)
	}
	text := pyName + ": " + s.inline(f.typ)
	switch {
	case f.required:
	case f.preset != nil:
		text += " = " + string(pyLiteral(*f.preset))
	default:
		text += " = ..."
	}
	return text
}

func (s *sigList) inline(t *typ) string {
	w := &inliner{lang: s.lang, level: s.level, limit: maxParams}
	w.typ(t, 0)
	text := w.bounded()
	s.cut, s.over = s.cut || w.cut, s.over || text == "..."
	return text
}

func (s *sigList) text() string {
	text := strings.Join(s.parts, ", ")
	if s.lang == TypeScript && text != "" {
		return "{" + text + "}"
	}
	return text
}
