package codegen

import (
	"strconv"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	// maxParams and maxResult bound the two halves of a signature, in bytes.
	maxParams = 500
	maxResult = 250
	// briefParams and briefResult bound the signatures of worse search hits.
	briefParams = 160
	briefResult = 100
	// maxSignature bounds the whole signature, in runes.
	maxSignature = 1400
)

// Import returns the line that imports a tool's wrapper.
func Import(id tool.ID, lang Language) string {
	up, name := string(ident(id.Upstream)), string(ident(id.Name))
	if lang == TypeScript {
		return "import { " + name + ` } from "servers/` + up + `"`
	}
	return "from servers." + up + " import " + name
}

// signature returns the signature of a tool on one line, and whether it is complete. Nested types are written out as far
// as they fit, with "..." for the rest; the last usual parameters have no types:
//
//	memory.open_nodes(names: list[str], *, depth: int = 1) -> {entities: list[{name: str}]}
//	memory.open_nodes({names: string[], depth?: number}): Promise<{entities: {name: string}[]}>
//
// It has at most 1,400 runes.
func signature(t tool.Tool, fn function, lang Language, room, roomOfResult, usual int) (text string, whole bool) {
	l := newParamList(fn, lang, room, usual)
	params, whole := l.text, !l.cut
	result, wholeResult := inlineType(fn.result, lang, roomOfResult)
	name := string(ident(t.ID.Upstream) + "." + ident(t.ID.Name))
	if lang == TypeScript {
		text = name + "(" + params + "): Promise<" + result + ">"
	} else {
		text = name + "(" + params + ") -> " + result
	}
	return sanitize.Line(text, maxSignature) + observedMark(fn, lang), whole && wholeResult
}

// newParamList writes the parameters. While they are longer than room, in bytes, it
// writes the longest one level flatter; if all are flat, the last ones lose their
// types. The last usual parameters never have types.
func newParamList(fn function, lang Language, room, usual int) *paramList {
	l := &paramList{fn: fn, lang: lang, room: room, firstUsual: len(fn.params) - usual, names: pyParams(fn.params), params: make([]sigParam, len(fn.params))}
	size := 0
	for i := range l.params {
		if i >= l.firstUsual {
			l.params[i] = sigParam{text: l.untyped(i), level: untypedLevel, cut: true}
		} else {
			l.write(i, maxLevel)
		}
		size += len(l.params[i].text) + 2
	}
	for size > room {
		i := l.longest()
		if i < 0 {
			break
		}
		size -= len(l.params[i].text)
		l.write(i, l.params[i].level-1)
		size += len(l.params[i].text)
	}
	l.text = strings.Join(l.parts(), ", ")
	if lang == TypeScript && l.text != "" {
		l.text = "{" + l.text + "}"
	}
	return l
}

type paramList struct {
	fn         function
	lang       Language
	room       int
	firstUsual int      // index of the first usual parameter
	names      []string // Python names
	params     []sigParam
	text       string
	// cut is set if something is not written out.
	cut bool
}

// sigParam is a parameter written at a level.
type sigParam struct {
	text  string
	level int
	cut   bool
}

// longest returns the longest parameter that can be written flatter, -1 for none.
func (l *paramList) longest() int {
	found := -1
	for i, p := range l.params {
		if p.level > untypedLevel && (found < 0 || len(p.text) > len(l.params[found].text)) {
			found = i
		}
	}
	return found
}

func (l *paramList) write(i, level int) {
	f := l.fn.params[i]
	w := inlineFrom(level, f.typ, l.lang, l.room)
	typ := w.finish()
	p := sigParam{level: w.level, cut: w.cut}
	switch {
	case l.lang == TypeScript:
		p.text = string(tsMember(f)) + typ
	case f.required:
		p.text = l.name(i) + ": " + typ
	case f.defaultValue != nil:
		p.text = l.name(i) + ": " + typ + " = " + string(pyLiteral(*f.defaultValue))
	default:
		p.text = l.name(i) + ": " + typ + " = ..."
	}
	l.params[i] = p
}

// parts returns the parameters in the brackets. Required parameters may use twice the
// room; beyond it only names are written, then the number of remaining ones.
func (l *paramList) parts() []string {
	var parts []string
	star, size, bare := l.lang == TypeScript, 0, false
	for i, f := range l.fn.params {
		if !f.required && !star {
			parts, star = append(parts, "*"), true
		}
		if usual := len(l.params) - l.firstUsual; i == l.firstUsual && usual > maxUsual {
			return l.omitRest(parts, i)
		}
		part := l.params[i].text
		size += len(part) + 2
		bare = bare || size > 2*l.room || !f.required && size > l.room
		if bare {
			size -= len(part)
			part = l.untyped(i)
			size += len(part)
			l.params[i].cut = true
		}
		l.cut = l.cut || l.params[i].cut
		if size > 2*l.room {
			return l.omitRest(parts, i)
		}
		parts = append(parts, part)
	}
	return append(parts, l.extra()...)
}

// omitRest appends the number of parameters from i on, which are omitted.
func (l *paramList) omitRest(parts []string, i int) []string {
	parts = append(parts, "... "+strconv.Itoa(len(l.params)-i)+" more")
	for ; i < len(l.params); i++ {
		l.params[i].cut = true
	}
	l.cut = true
	return append(parts, l.extra()...)
}

// untyped returns a parameter without its type.
func (l *paramList) untyped(i int) string {
	f := l.fn.params[i]
	switch {
	case l.lang == TypeScript:
		return strings.TrimSuffix(string(tsMember(f)), ": ")
	case f.required:
		return l.name(i)
	}
	return l.name(i) + "=..."
}

// name returns a parameter's Python name, with its wire name if that is more
// informative: `created_gt ("created>")`, but just page_size for "page-size".
func (l *paramList) name(i int) string {
	wire := l.fn.params[i].name
	if l.names[i] == wire || plainlyRenamed(l.names[i], wire) {
		return l.names[i]
	}
	return l.names[i] + " (" + sanitize.Line(show(wire), 40) + ")"
}

// plainlyRenamed reports whether name is wire with only punctuation replaced by underscores.
func plainlyRenamed(name, wire string) bool {
	return strings.Trim(name, "_") == strings.Trim(strings.Map(asciiIdentifier, wire), "_") && !strings.ContainsFunc(wire, func(r rune) bool { return r > '~' })
}

func (l *paramList) extra() []string {
	if l.fn.extra == nil {
		return nil
	}
	text, whole := inlineType(l.fn.extra, l.lang, maxResult)
	l.cut = l.cut || !whole
	if l.lang == TypeScript {
		return []string{"[key: string]: " + text}
	}
	return []string{"**" + extraName(l.names) + ": " + text}
}

// extraName returns an unused name for additional arguments.
func extraName(names []string) string { return uniqueName("extra", stringSet(names)) }
