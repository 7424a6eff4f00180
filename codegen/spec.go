package codegen

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// spec builds the guest runtime's description of a tool: one JSON object in a string
// literal at the end of the file, the third argument of every wrapper's call. The
// runtime parses it at the tool's first call, since most imported wrappers are never
// called.
//
//	{"sig":"memory.open_nodes(names: list[str])","args":{"o":{"names":{"l":"s"}}},"defs":[...]}
//
// args is the type of the arguments, omitted if they cannot be checked. A type is
//
//	"s" "i" "n" "b" "z" "*"       text, whole number, number, boolean, null, anything
//	{"e":["a",1,true]}            one of these values
//	{"l":T}  {"m":T}              a list of T; an object with any keys and values T
//	{"t":[T,T],"l":T}             a list that begins with these; l is the type of the rest, anything if omitted
//	{"u":[T,T]}                   one of these
//	{"o":{"a":T,"b?":T},"x":T}    an object; b is optional; x is the type of other members, which are invalid without it
//	0, 1, ...                     defs[0], defs[1], ...
//
// pages is the pagination for iterate (see pages.go). wrap is set if the server's results are {"result": VALUE}.
//
// A required name that itself ends in ? or ! has a ! appended.
type spec struct {
	b bytes.Buffer
	// defIndex maps a definition to its index in defs; definitions with one use are inlined.
	defIndex map[*def]int
}

// maxSpec bounds args and defs together, in bytes. Beyond it only the gateway checks
// arguments. The longest of a real tool has 20 KB.
const maxSpec = 48 << 10

// maxSpecSignature bounds the signature, in runes: it is used as the hint of an error, which has at most 500.
const maxSpecSignature = 480

// Spec returns a tool's description for the runtime, as JSON text. The files of [Generate] have it; tests of the runtime
// read it here.
func Spec(t tool.Tool, lang Language) string { return toolSpec(t, model(t), lang) }

func toolSpec(t tool.Tool, fn function, lang Language) string {
	s := &spec{}
	s.text(`{"sig":`)
	params := newParamList(fn, lang, maxParams, 0).text
	s.string(sanitize.Line(string(ident(t.ID.Upstream)+"."+ident(t.ID.Name))+"("+params+")", maxSpecSignature))
	if types := argumentTypes(fn); len(types) <= maxSpec {
		s.text(types)
	}
	if _, wrapped := t.ResultSchema(); wrapped {
		s.text(`,"wrap":true`)
	}
	if paged := pagesJSON(fn); paged != "" {
		s.text(`,"pages":` + paged)
	}
	s.text("}")
	return s.b.String()
}

// argumentTypes returns the members args and defs, with a leading comma.
func argumentTypes(fn function) string {
	if len(fn.params) == 0 && fn.extra != nil && fn.extra.kind == anyKind {
		return ""
	}
	s := &spec{defIndex: map[*def]int{}}
	defs := s.sharedDefs(fn)
	s.text(`,"args":`)
	s.object(fn.params, fn.extra)
	for i, d := range defs {
		s.text([]string{`,"defs":[`, ","}[min(i, 1)])
		s.typ(d.typ)
	}
	if len(defs) > 0 {
		s.text("]")
	}
	return s.b.String()
}

// sharedDefs returns the definitions that arguments use more than once, and assigns their indexes.
func (s *spec) sharedDefs(fn function) []*def {
	uses := map[*def]int{}
	var count func(t *typ)
	count = func(t *typ) {
		if t.def != nil {
			if uses[t.def]++; uses[t.def] == 1 {
				count(t.def.typ)
			}
		}
		if t.elem != nil {
			count(t.elem)
		}
		for _, arm := range t.arms {
			count(arm)
		}
		for _, f := range t.fields {
			count(f.typ)
		}
	}
	for _, f := range fn.params {
		count(f.typ)
	}
	if fn.extra != nil {
		count(fn.extra)
	}
	var defs []*def
	for _, d := range fn.defs {
		if uses[d] > 1 {
			s.defIndex[d] = len(defs)
			defs = append(defs, d)
		}
	}
	return defs
}

func (s *spec) text(text string) { s.b.WriteString(text) }

// string writes a JSON string.
func (s *spec) string(text string) {
	enc := json.NewEncoder(&s.b)
	enc.SetEscapeHTML(false)
	if enc.Encode(text) == nil { // no string fails
		s.b.Truncate(s.b.Len() - 1) // the newline
	}
}

func (s *spec) typ(t *typ) {
	if s.b.Len() > maxSpec { // too long, the result is discarded
		return
	}
	switch t.kind {
	case literalKind:
		s.literals(t.values)
	case listKind:
		s.wrap("l", t.elem)
	case mapKind:
		s.wrap("m", t.elem)
	case tupleKind:
		s.list("t", t.arms)
		if t.elem != nil {
			s.text(`,"l":`)
			s.typ(t.elem)
		}
		s.text("}")
	case unionKind:
		s.list("u", t.arms)
		s.text("}")
	case objectKind:
		s.object(t.fields, others(t))
	case refKind:
		s.reference(t.def)
	default:
		s.text(scalarSpec(t.kind))
	}
}

// scalarSpec returns a type without parts.
func scalarSpec(k kind) string {
	switch k {
	case nullKind:
		return `"z"`
	case boolKind:
		return `"b"`
	case intKind:
		return `"i"`
	case numberKind:
		return `"n"`
	case stringKind:
		return `"s"`
	}
	return `"*"`
}

// others returns the type of the unnamed members of an object, nil if the schema
// forbids them. The runtime must reject only what the schema forbids.
func others(t *typ) *typ {
	if t.closed {
		return nil
	}
	return anyType
}

func (s *spec) wrap(key string, t *typ) {
	s.text(`{"` + key + `":`)
	s.typ(t)
	s.text("}")
}

// list writes an object's first member and leaves the object open.
func (s *spec) list(key string, types []*typ) {
	s.text(`{"` + key + `":[`)
	for i, t := range types {
		if i > 0 {
			s.text(",")
		}
		s.typ(t)
	}
	s.text("]")
}

func (s *spec) reference(d *def) {
	if i, ok := s.defIndex[d]; ok {
		s.text(strconv.Itoa(i))
		return
	}
	s.typ(d.typ)
}

func (s *spec) object(fields []field, more *typ) {
	s.text(`{"o":{`)
	for i, f := range fields {
		if i > 0 {
			s.text(",")
		}
		s.string(specName(f))
		s.text(":")
		s.typ(f.typ)
	}
	s.text("}")
	if more != nil {
		s.text(`,"x":`)
		s.typ(more)
	}
	s.text("}")
}

func specName(f field) string {
	switch {
	case !f.required:
		return f.name + "?"
	case strings.HasSuffix(f.name, "?"), strings.HasSuffix(f.name, "!"):
		return f.name + "!"
	}
	return f.name
}

func (s *spec) literals(values []literal) {
	s.text(`{"e":[`)
	for i, v := range values {
		if i > 0 {
			s.text(",")
		}
		if v.kind == stringKind {
			s.string(v.text)
			continue
		}
		s.text(string(tsLiteral(v)))
	}
	s.text("]}")
}
