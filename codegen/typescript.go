package codegen

import (
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// tsFile prints the module of one tool.
type tsFile struct {
	printer
	fn function
}

func typescriptTool(t tool.Tool, fn function) []byte {
	p := &tsFile{printer: printer{unit: "  "}, fn: fn}
	p.line("// ", header)
	p.line("import { call", blobImport(fn), ` } from "sallyport";`)
	p.line()
	p.function(t)
	for _, d := range fn.defs {
		p.line()
		p.def(d)
	}
	p.line()
	p.line("const SPEC = ", tsText(toolSpec(t, fn, TypeScript)), ";")
	if tsReserved[t.ID.Name] {
		p.line("export { _", ident(t.ID.Name), " as ", ident(t.ID.Name), " };")
	}
	return p.bytes()
}

// tsReserved holds the names that a module uses besides its function and its types.
var tsReserved = stringSet([]string{"call", "Blob", "SPEC"})

func (p *tsFile) def(d *def) {
	p.doc(doc{text: d.doc.text})
	if d.typ.kind != objectKind {
		p.line("export type ", ident(d.name), " = ", tsType(d.typ, tsRef), ";")
		return
	}
	p.block("export interface "+ident(d.name)+" {", func() { p.members(d.typ.fields, openType(d.typ.open), maxFieldDoc) }, "}")
}

func openType(open bool) *typ {
	if open {
		return anyType
	}
	return nil
}

// members writes the members of an object type; extra is the type of unnamed ones, nil for none.
func (p *tsFile) members(fields []field, extra *typ, limit int) {
	for _, f := range fields {
		if text := f.doc.line(limit); text != "" {
			p.lines(tsDoc(text))
		}
		p.line(tsMember(f), tsType(f.typ, tsRef), ";")
	}
	if extra != nil {
		if len(fields) > 0 { // TypeScript requires it to fit the named members too
			extra = anyType
		}
		p.line("[key: string]: ", tsType(extra, tsRef), ";")
	}
}

func (p *tsFile) doc(d doc) {
	if text := d.line(maxFieldDoc); text != "" {
		p.lines(tsDoc(text))
	}
}

// tsMember returns a member's name, quoted if necessary, with ": " or "?: ".
func tsMember(f field) code {
	name := tsString(f.name)
	if isIdentifier(f.name) && !strings.HasPrefix(f.name, "__") && f.name != "constructor" {
		name = ident(f.name)
	}
	if f.required {
		return name + ": "
	}
	return name + "?: "
}

func (p *tsFile) function(t tool.Tool) {
	p.lines(tsDoc(tsFunctionDoc(t, p.fn)))
	result := tsType(p.fn.result, tsRef)
	open := "export function " + ident(t.ID.Name) + "("
	if tsReserved[t.ID.Name] {
		open = "function _" + ident(t.ID.Name) + "("
	}
	id := tsString(t.ID.String())
	switch {
	case len(p.fn.params) == 0 && p.fn.extra == nil:
		p.line(open, "args: {} = {}): Promise<", result, "> {")
	default:
		p.block(open+"args: {", func() { p.members(p.fn.params, p.fn.extra, maxParamDoc) }, "}"+p.argsDefault()+"): Promise<"+result+"> {")
	}
	p.depth++
	p.line("return call(", id, ", args, SPEC);")
	p.depth--
	p.line("}")
}

// argsDefault returns the default of the arguments object, if no parameter is required.
func (p *tsFile) argsDefault() code {
	if len(p.fn.params) > 0 && p.fn.params[0].required {
		return ""
	}
	return " = {}"
}

func tsFunctionDoc(t tool.Tool, fn function) string {
	return purpose(t) + strings.Join(append([]string{""}, fn.stubNotes()...), "\n")
}

// tsRef writes a definition by its name.
func tsRef(d *def) code { return ident(d.name) }

// tsType returns a type in TypeScript; ref writes definitions.
func tsType(t *typ, ref func(*def) code) code {
	switch t.kind {
	case nullKind:
		return "null"
	case boolKind:
		return "boolean"
	case intKind, numberKind:
		return "number"
	case stringKind:
		return "string"
	case literalKind:
		return tsLiterals(t.values)
	case listKind:
		return tsElement(t.elem, ref) + "[]"
	case tupleKind:
		return tsTuple(t, ref)
	case mapKind:
		return "{ [key: string]: " + tsType(t.elem, ref) + " }"
	case unionKind:
		return joinCode(tsTypes(t.arms, ref), " | ")
	case blobKind:
		return "Blob"
	case refKind:
		return ref(t.def)
	}
	if t.fromCaller {
		return "unknown"
	}
	return "any"
}

func tsTypes(types []*typ, ref func(*def) code) []code {
	parts := make([]code, len(types))
	for i, t := range types {
		parts[i] = tsType(t, ref)
	}
	return parts
}

// tsElement returns the type of a list element, with parentheses around alternatives.
func tsElement(t *typ, ref func(*def) code) code {
	elem := tsType(t, ref)
	if t.kind == unionKind || t.kind == literalKind && len(t.values) > 1 {
		return "(" + elem + ")"
	}
	return elem
}

func tsTuple(t *typ, ref func(*def) code) code {
	parts := tsTypes(t.arms, ref)
	if t.elem != nil {
		parts = append(parts, "..."+tsElement(t.elem, ref)+"[]")
	}
	return "[" + joinCode(parts, ", ") + "]"
}

func tsLiterals(values []literal) code {
	parts := make([]code, len(values))
	for i, v := range values {
		parts[i] = tsLiteral(v)
	}
	return joinCode(parts, " | ")
}

func tsLiteral(v literal) code {
	switch {
	case v.kind == stringKind:
		return tsString(v.text)
	case v.kind == boolKind && v.text == "true":
		return "true"
	case v.kind == boolKind:
		return "false"
	}
	return digits(v.text)
}

// oneLiner returns about the first sentence of a tool's description.
func oneLiner(t tool.Tool) string {
	text := ProgramNames(sanitize.Text(t.Description, 400), t.Siblings)
	if text == "" {
		text = t.Title
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if i := strings.Index(text, ". "); i > 0 {
		text = text[:i]
	}
	return strings.TrimSuffix(sanitize.Line(text, 100), ".")
}
