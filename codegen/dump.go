package codegen

import (
	"bytes"
	"encoding/json"

	"sallyport/internal/tool"
)

// Dump returns the language-neutral model of a tool, from which all wrappers are printed, as
// indented JSON with a final newline, for debugging. Output is deterministic.
//
//	{"tool","wire","params":[FIELD],"extra":TYPE,"notes":[...],"result":TYPE,"observed":3,"defs":[{"name","doc","type"}],"pages":{...}}
//
// A FIELD is {"name","required","default","doc","notes","type"}. A TYPE is {"kind"} of any null
// bool int number string literal list tuple map object union ref blob, with "values" (of a literal),
// "elem" (of a list or map, or of the rest of a tuple), "arms" (of a tuple or union), "fields" and
// "open" or "closed" (of an object), or "ref" (the name of a def). Empty members are omitted.
func Dump(t tool.Tool) []byte {
	fn := model(t)
	d := dumped{Tool: t.ID.String(), Params: dumpFields(fn.params), Extra: dumpType(fn.extra), Notes: fn.notes,
		Result: dumpType(fn.result), Observed: fn.observed, Pages: pages(fn)}
	if t.Wire != t.ID.Name {
		d.Wire = t.Wire
	}
	for _, def := range fn.defs {
		d.Defs = append(d.Defs, dumpedDef{def.name, def.doc.text, dumpType(def.typ)})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(d) // texts, numbers and lists of them can be encoded
	return b.Bytes()
}

type dumped struct {
	Tool     string        `json:"tool"`
	Wire     string        `json:"wire,omitempty"`
	Params   []dumpedField `json:"params"`
	Extra    *dumpedType   `json:"extra,omitempty"`
	Notes    []string      `json:"notes,omitempty"`
	Result   *dumpedType   `json:"result"`
	Observed int           `json:"observed,omitempty"`
	Defs     []dumpedDef   `json:"defs,omitempty"`
	Pages    *Paging       `json:"pages,omitempty"`
}

type dumpedDef struct {
	Name string      `json:"name"`
	Doc  string      `json:"doc,omitempty"`
	Type *dumpedType `json:"type"`
}

type dumpedField struct {
	Name     string      `json:"name"`
	Required bool        `json:"required"`
	Default  any         `json:"default,omitempty"`
	Doc      string      `json:"doc,omitempty"`
	Notes    []string    `json:"notes,omitempty"`
	Type     *dumpedType `json:"type"`
}

type dumpedType struct {
	Kind   string        `json:"kind"`
	Values []any         `json:"values,omitempty"`
	Elem   *dumpedType   `json:"elem,omitempty"`
	Arms   []*dumpedType `json:"arms,omitempty"`
	Fields []dumpedField `json:"fields,omitempty"`
	Open   bool          `json:"open,omitempty"`
	Closed bool          `json:"closed,omitempty"`
	Ref    string        `json:"ref,omitempty"`
}

func kindName(k kind) string {
	return map[kind]string{
		anyKind: "any", nullKind: "null", boolKind: "bool", intKind: "int", numberKind: "number", stringKind: "string", literalKind: "literal",
		listKind: "list", tupleKind: "tuple", mapKind: "map", objectKind: "object", unionKind: "union", refKind: "ref", blobKind: "blob",
	}[k]
}

func dumpType(t *typ) *dumpedType {
	if t == nil {
		return nil
	}
	d := &dumpedType{Kind: kindName(t.kind), Elem: dumpType(t.elem), Fields: dumpFields(t.fields), Open: t.open, Closed: t.closed}
	for _, v := range t.values {
		d.Values = append(d.Values, dumpLiteral(v))
	}
	for _, arm := range t.arms {
		d.Arms = append(d.Arms, dumpType(arm))
	}
	if t.def != nil {
		d.Ref = t.def.name
	}
	return d
}

func dumpFields(fields []field) []dumpedField {
	list := []dumpedField{}
	for _, f := range fields {
		d := dumpedField{Name: f.name, Required: f.required, Doc: f.doc.text, Notes: f.doc.notes, Type: dumpType(f.typ)}
		if f.defaultValue != nil {
			d.Default = dumpLiteral(*f.defaultValue)
		}
		list = append(list, d)
	}
	return list
}

// dumpLiteral returns a literal as a JSON value.
func dumpLiteral(v literal) any {
	if v.kind == stringKind || !json.Valid([]byte(v.text)) {
		return v.text
	}
	return json.RawMessage(v.text)
}
