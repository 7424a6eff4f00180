package codegen

import (
	_ "embed"
	"fmt"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Programs access resources and prompts through two modules of the upstream's
// package. No tool has one of these names.
const (
	resourcesModule = "resources"
	promptsModule   = "prompts"
)

//go:embed offer.py
var pythonOffer []byte

//go:embed offer.ts
var typescriptOffer []byte

// maxOffered is how many resources, templates or prompts a module's documentation lists.
const maxOffered = 100

func (up Upstream) hasResources() bool { return len(up.Resources)+len(up.Templates) > 0 }
func (up Upstream) hasPrompts() bool   { return len(up.Prompts) > 0 }

// modules returns the names of the upstream's modules for resources and prompts.
func (up Upstream) modules() (names []string) {
	if up.hasResources() {
		names = append(names, resourcesModule)
	}
	if up.hasPrompts() {
		names = append(names, promptsModule)
	}
	return names
}

// Offers describes in one line how a program accesses the resources and prompts of an
// upstream, "" if there are none:
//
//	from servers.docs import resources, prompts: resources.read(uri) (12 listed, 2 templates), prompts.get(name, **arguments) (3 listed)
func Offers(up Upstream, lang Language) string {
	names := up.modules()
	if len(names) == 0 || !usable(up.ID) {
		return ""
	}
	get, open := "prompts.get(name, **arguments)", "from servers."+up.ID+" import "+strings.Join(names, ", ")
	if lang == TypeScript {
		get, open = "prompts.get(name, arguments)", "import { "+strings.Join(names, ", ")+` } from "servers/`+up.ID+`"`
	}
	var calls []string
	if up.hasResources() {
		calls = append(calls, "resources.read(uri) ("+countText(len(up.Resources), len(up.Templates))+")")
	}
	if up.hasPrompts() {
		calls = append(calls, get+" ("+countText(len(up.Prompts), 0)+")")
	}
	return open + ": " + strings.Join(calls, ", ")
}

func countText(listed, templates int) string {
	var parts []string
	if listed > 0 {
		parts = append(parts, fmt.Sprintf("%d listed", listed))
	}
	if templates == 1 {
		parts = append(parts, "1 template")
	} else if templates > 1 {
		parts = append(parts, fmt.Sprintf("%d templates", templates))
	}
	return strings.Join(parts, ", ")
}

// offerFiles returns the modules for resources and prompts.
func offerFiles(up Upstream) (files []File) {
	if up.hasResources() {
		files = append(files,
			File{Path: up.ID + "/resources.py", Data: pythonResources(up)}, File{Path: up.ID + "/resources.ts", Data: typescriptResources(up)})
	}
	if up.hasPrompts() {
		files = append(files,
			File{Path: up.ID + "/prompts.py", Data: pythonPrompts(up)}, File{Path: up.ID + "/prompts.ts", Data: typescriptPrompts(up)})
	}
	return files
}

func pythonResources(up Upstream) []byte {
	p := pythonOfferModule(resourcesDoc(up), "from sallyport import Blob as _Blob",
		"from ..__aio__ import call as _call, with_aio as _with_aio", "from ..__offer__ import Resource as _Resource, Template as _Template")
	p.offerFunction("read(uri: str) -> str | _Blob | _list[str | _Blob]", "Reads one resource: a str, a Blob, or a list of them.", pyString(up.method(tool.ReadResource)), `{"uri": uri}`)
	p.offerFunction("list() -> _list[_Resource]", "Lists the resources.", pyString(up.method(tool.ListResources)), "{}")
	p.offerFunction("templates() -> _list[_Template]", "Lists the readable URI templates (RFC 6570).", pyString(up.method(tool.ListTemplates)), "{}")
	return p.bytes()
}

func pythonPrompts(up Upstream) []byte {
	p := pythonOfferModule(promptsDoc(up),
		"from ..__aio__ import Any as _Any, call as _call, with_aio as _with_aio", "from ..__offer__ import Answer as _Answer, Prompt as _Prompt, texts as _texts")
	p.offerFunction("get(name: str, arguments: dict[str, _Any] | None = None, /, **more: _Any) -> _Answer",
		"Fills in a prompt: get(name, topic=...) or get(name, {...}).", pyString(up.method(tool.GetPrompt)), `{"name": name, "arguments": _texts(arguments, more)}`)
	p.offerFunction("list() -> _list[_Prompt]", "Lists the prompts with their arguments.", pyString(up.method(tool.ListPrompts)), "{}")
	return p.bytes()
}

func (up Upstream) method(name string) string {
	return tool.ID{Upstream: up.ID, Name: name}.String()
}

// pythonOfferModule writes the head of a module. It imports everything under private names.
func pythonOfferModule(doc string, imports ...code) *pyFile {
	p := &pyFile{printer: printer{unit: "    "}}
	p.line("# ", header)
	p.lines(pyDoc(doc))
	p.line("from __future__ import annotations")
	p.line("from builtins import list as _list")
	p.lines(imports)
	return p
}

// offerFunction prints one function that calls a method of the gateway.
func (p *pyFile) offerFunction(head code, doc string, id, args code) {
	p.line()
	p.line()
	p.line("@_with_aio")
	p.block("def "+head+":", func() {
		p.lines(pyDoc(doc))
		p.line("return _call(", id, ", ", args, ")")
	}, "")
}

func typescriptResources(up Upstream) []byte {
	p := typescriptOfferModule(resourcesDoc(up), `import type { Blob } from "sallyport";`, `import type { Resource, Template } from "../__offer__";`)
	p.offerFunction("read(uri: string): ", "string | Blob | (string | Blob)[]", "Reads one resource: a string, a Blob, or a list of them.", tsString(up.method(tool.ReadResource)), "{ uri }")
	p.offerFunction("list(): ", "Resource[]", "Lists the resources.", tsString(up.method(tool.ListResources)), "{}")
	p.offerFunction("templates(): ", "Template[]", "Lists the readable URI templates (RFC 6570).", tsString(up.method(tool.ListTemplates)), "{}")
	return p.bytes()
}

func typescriptPrompts(up Upstream) []byte {
	p := typescriptOfferModule(promptsDoc(up), `import { type Answer, type Prompt, texts } from "../__offer__";`)
	p.offerFunction("get(name: string, args: { [name: string]: any } = {}): ", "Answer", "Fills in a prompt.", tsString(up.method(tool.GetPrompt)), "{ name, arguments: texts(args) }")
	p.offerFunction("list(): ", "Prompt[]", "Lists the prompts with their arguments.", tsString(up.method(tool.ListPrompts)), "{}")
	return p.bytes()
}

func typescriptOfferModule(doc string, imports ...code) *tsFile {
	p := &tsFile{printer: printer{unit: "  "}}
	p.line("// ", header)
	p.lines(tsDoc(doc))
	p.line(`import { call } from "sallyport";`)
	p.lines(imports)
	return p
}

func (p *tsFile) offerFunction(head, result code, doc string, id, args code) {
	p.line()
	p.lines(tsDoc(doc))
	p.block("export function "+head+"Promise<"+result+"> {", func() { p.line("return call<", result, ">(", id, ", ", args, ");") }, "}")
}

func resourcesDoc(up Upstream) string {
	l := &listing{}
	l.b.WriteString("Resources of " + up.ID + ".")
	l.section("Resources", len(up.Resources))
	for _, r := range up.Resources[:min(len(up.Resources), maxOffered)] {
		l.entry(r.URI, "", r.Description, r.Title, r.Name)
	}
	l.section("Templates", len(up.Templates))
	for _, t := range up.Templates[:min(len(up.Templates), maxOffered)] {
		l.entry(t.URI, "", t.Description, t.Title, t.Name)
	}
	return l.b.String()
}

func promptsDoc(up Upstream) string {
	l := &listing{}
	l.b.WriteString("Prompts of " + up.ID + ".")
	l.section("Prompts", len(up.Prompts))
	for _, p := range up.Prompts[:min(len(up.Prompts), maxOffered)] {
		l.entry(p.Name, argumentList(p.Arguments), p.Description, p.Title)
	}
	return l.b.String()
}

// argumentList returns a prompt's arguments in parentheses, optional ones with "?".
func argumentList(args []tool.Argument) string {
	var names []string
	for _, a := range args[:min(len(args), 20)] {
		name := sanitize.Line(a.Name, 60)
		if !a.Required {
			name += "?"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// listing builds the documentation of a module from untrusted parts.
type listing struct{ b strings.Builder }

func (l *listing) section(name string, n int) {
	if n > 0 {
		l.b.WriteString("\n\n" + name + ":")
	}
	if n > maxOffered {
		fmt.Fprintf(&l.b, " (the first %d of %d)", maxOffered, n)
	}
}

// entry writes a URI or a name, quoted, and the first of texts that is not empty.
func (l *listing) entry(name, after string, texts ...string) {
	l.b.WriteString("\n  " + show(name) + after)
	for _, text := range texts {
		if text = sanitize.Line(text, 100); text != "" {
			l.b.WriteString(": " + text)
			return
		}
	}
}
