package codegen

import (
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Outline is what an editor shows of a wrapper. Its texts are of one line each, and bounded.
type Outline struct {
	Name      string `json:"name"`
	Signature string `json:"signature"`
	// About is the first sentence of the tool's description.
	About      string      `json:"about,omitempty"`
	Parameters []Parameter `json:"parameters,omitempty"`
}

// Parameter is an argument of a wrapper, by its name in a program.
type Parameter struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	About    string `json:"about,omitempty"`
	Required bool   `json:"required,omitempty"`
}

const (
	// maxOutlined is the maximum number of parameters of an outline.
	maxOutlined = 200
	// maxOutlineType and maxOutlineDoc bound the type and the description of a parameter, in characters.
	maxOutlineType, maxOutlineDoc = 120, 300
)

// OutlineOf returns the outline of a tool's wrapper.
func OutlineOf(t tool.Tool, lang Language) Outline {
	fn := model(t)
	text, _ := signature(t, fn, lang, briefParams, briefResult, 0)
	o := Outline{Name: string(ident(t.ID.Name)), Signature: text, About: oneLiner(t)}
	fields := fn.params[:min(len(fn.params), maxOutlined)]
	names := pyParams(fields)
	for i, f := range fields {
		p := Parameter{Name: names[i], About: sanitize.Line(f.doc.line(maxOutlineDoc), maxOutlineDoc), Required: f.required}
		if lang == TypeScript {
			p.Name = sanitize.Line(f.name, maxName)
		}
		text, _ := inlineType(f.typ, lang, maxDescribedType)
		p.Type = sanitize.Line(text, maxOutlineType)
		if lang == TypeScript && p.Name != f.name {
			continue // its name cannot be written as it is shown
		}
		o.Parameters = append(o.Parameters, p)
	}
	return o
}
