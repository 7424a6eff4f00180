package codegen

import (
	"strings"
	"unicode/utf8"

	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

const (
	// maxDescribe bounds a full description, in bytes; the last lines to be left out are parameters.
	maxDescribe = 8000
	// maxPurpose bounds the upstream's own words in it, in runes.
	maxPurpose = 2500
	// maxPath is how deep members of parameters are explained.
	maxPath = 3
	// maxDescribedType bounds a type beside a parameter and that of the result, in bytes.
	maxDescribedType = 160
	maxReturns       = 1200
)

// Describe returns all that a model needs to call a tool: the import line, the
// signature, what the tool does, then each parameter and each member of one with
// its constraints, and the type of the result where the signature cut it. It has
// at most about 8,000 bytes.
func Describe(t tool.Tool, lang Language) string {
	fn := model(t)
	sig, whole := signature(t, fn, lang)
	d := &description{lang: lang, types: !whole, seen: map[*def]bool{}}
	d.line(Import(t.ID, lang))
	d.line(sig)
	d.line("")
	d.line(plain.Text(purpose(t), maxPurpose))
	for _, n := range fn.notes {
		d.line(n)
	}
	d.parameters(fn.params)
	d.returns(fn.result)
	return strings.TrimRight(d.b.String(), "\n")
}

type description struct {
	b    strings.Builder
	lang Language
	// types says that the signature does not tell all types.
	types bool
	// seen holds the definitions whose members were explained.
	seen map[*def]bool
	// left counts lines that found no room.
	left int
}

func (d *description) line(text string) {
	if d.b.Len()+len(text) > maxDescribe {
		d.left++
		return
	}
	d.b.WriteString(text)
	d.b.WriteByte('\n')
}

func (d *description) parameters(params []field) {
	names := make([]string, len(params))
	for i, f := range params {
		names[i] = f.name
	}
	if d.lang == Python {
		names = pyParams(params)
	}
	before := d.b.Len()
	d.line("\nParameters:")
	start := d.b.Len()
	for i, f := range params {
		d.member(names[i], names[i] != f.name, f, 1)
	}
	if d.b.Len() == start { // nothing to say
		text := d.b.String()[:before]
		d.b.Reset()
		d.b.WriteString(text)
	}
	if d.left > 0 {
		d.b.WriteString("(more is left out; read the wrapper's file)\n")
	}
}

// member explains one parameter or member, then what is in it.
func (d *description) member(path string, renamed bool, f field, depth int) {
	text := f.doc.line(maxFieldDoc)
	if renamed {
		text = strings.TrimSpace("sent as " + show(f.name) + ". " + text)
	}
	if d.types {
		inline, _ := inlineType(f.typ, d.lang, maxDescribedType)
		if !f.required && depth > 1 {
			inline += ", optional"
		}
		text = strings.TrimSpace("(" + inline + ") " + text)
	}
	if text != "" {
		d.line(strings.Repeat("  ", depth) + plain.Line(path, maxName) + ": " + text)
	}
	if depth < maxPath {
		d.inside(path, f.typ, depth)
	}
}

// inside explains the members of the objects that a type is made of, each object once.
func (d *description) inside(path string, t *typ, depth int) {
	switch t.kind {
	case listKind:
		d.inside(path+"[]", t.elem, depth)
	case mapKind:
		d.inside(path+"{}", t.elem, depth)
	case unionKind, tupleKind:
		for _, arm := range t.arms {
			d.inside(path, arm, depth)
		}
	case refKind:
		if d.seen[t.def] {
			return
		}
		d.seen[t.def] = true
		d.inside(path, t.def.typ, depth)
	case objectKind:
		for _, f := range t.fields {
			d.member(path+"."+f.name, false, f, depth+1)
		}
	}
}

// returns writes the type of the result, if the signature cut it and more fits here.
func (d *description) returns(t *typ) {
	if _, whole := inlineType(t, d.lang, maxResult); whole {
		return
	}
	text, _ := inlineType(t, d.lang, maxReturns)
	if utf8.RuneCountInString(text) > 3 {
		d.line("\nReturns: " + text)
	}
}
