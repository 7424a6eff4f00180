package codegen_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sallyport/codegen"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// The payloads plant a file where they run.
const (
	pyPayload = `__import__("pathlib").Path("canary").touch()`
	tsPayload = `require("fs").writeFileSync("canary","")`
)

// breakouts are texts that would leave a docstring, a comment or a string, if
// anything did not quote them, and run a payload then.
func breakouts() []string {
	var texts []string
	for _, end := range []string{
		`"""`, `\"""`, `\\"""`, `""""`, `'''`, `"`, `\"`, `\`, `\\`, "*/", "**/", "*\\/", "`", "${", "{", "}", "\n", "\r", "\r\n",
		"\u2028", "\u2029", "\u0085", "\v", "\f", "\x00", "\x1b[31m", "\u202e", "\U000e0041", "\ufeff", "\xed\xa0\x80", "\xff",
		"//", "#", "<!--", "-->", "</script>", `\N{DIGIT ONE}`, `\x`, `\u`, `{{`, `%s`, `$(`, "]", ")", "):", "}))", "import os", "\t",
	} {
		texts = append(texts,
			end+"\n"+pyPayload+"\n"+end, end+";"+pyPayload+";"+end+"#", end+" + "+pyPayload+" + "+end,
			end+"\n"+tsPayload+"\n"+end, end+";"+tsPayload+";"+end+"//", end+"+"+tsPayload+"+"+end, "${"+tsPayload+"}"+end)
	}
	texts = append(texts, orders()...)
	return append(texts,
		"# coding: utf-7\n+AAo-"+pyPayload, "# -*- coding: rot13 -*-", "type: ignore", "@ts-nocheck", "@__NO_SIDE_EFFECTS__",
		"# sourceMappingURL=/etc/passwd", `="+`+pyPayload+`+"`, "a, b="+pyPayload, "self", "*args", "**kwargs", "__class__",
		"__proto__", "constructor", "then", "prototype", "toString", "__debug__", "None", "lambda", "class", "call", "_call", "SPEC", "_SPEC", "OMIT", "_OMIT",
		strings.Repeat("A", 100_000), strings.Repeat(`"""*/`, 20_000), strings.Repeat("\\", 9_999)+`"`)
}

// orders are texts that tell a checker, a compiler or a formatter to look away, or
// to read a file, if they stand in a comment.
func orders() []string {
	var texts []string
	for _, order := range []string{
		"type: ignore", "pyright: ignore", "pyright: basic", "pyright: strict, reportAssignmentType=false", "mypy: ignore-errors", "mypy: ignore-errors=True",
		"pylint: skip-file", "flake8: noqa", "ruff: noqa", "fmt: off", "isort: skip_file", "noqa", "-*- coding: rot13 -*-", "vim: set fileencoding=rot13 :",
	} {
		texts = append(texts, strings.Join([]string{order, "#" + order, "# " + order, "## # " + order, "#\t" + strings.ToUpper(order), "# #_" + order}, "\n"))
	}
	for _, order := range []string{
		"@ts-nocheck", "@ts-ignore", "@ts-expect-error", "@TS-NoCheck", "@jsx evil", "@jsxImportSource /etc", "@jsxRuntime automatic", "@__PURE__", "#__PURE__",
		"# sourceMappingURL=/etc/passwd", "@ sourceURL=x", "#sourceURL=x", `<reference path="/etc/passwd" />`, `<reference types="evil" />`, `<amd-module name="x" />`,
		`@import x from "/etc/passwd"`, `@type {import("/etc/passwd")}`, "@license", "@preserve", "eslint-disable", "prettier-ignore", "istanbul ignore file", "use strict", `"use strict"`,
	} {
		texts = append(texts, strings.Join([]string{order, "// " + order, "/// " + order, "/* " + order + " */", "*/ // " + order, "/*", "@" + order}, "\n"))
	}
	return texts
}

// hostileTool has the text in every place where a tool can have one.
func hostileTool(name, text string) tool.Tool {
	q := func(s string) string {
		data, _ := json.Marshal(s)
		return string(data)
	}
	x := q(text)
	words := `"description":` + x + `,"title":` + x + `,"format":` + x + `,"pattern":` + x + `,"default":` + x +
		`,"$comment":` + x + `,"examples":[` + x + `],"contentEncoding":` + x
	schema := `{"type":"object",` + words + `,"required":["plain",` + x + `],"$defs":{` + x + `:{"type":"object",` + words + `,"properties":{` + x + `:{"type":"string"},"again":{"$ref":` + q("#/$defs/"+strings.ReplaceAll(strings.ReplaceAll(text, "~", "~0"), "/", "~1")) + `}}}},
		"properties":{"plain":{"type":"string",` + words + `},` + x + `:{"type":["string","null"],` + words + `},
		"one":{"enum":[` + x + `,"b"],` + words + `},"two":{"const":` + x + `},"three":{"type":` + x + `},
		"four":{"type":"object",` + words + `,"required":[` + x + `],"properties":{` + x + `:{"enum":[` + x + `]},"in":{"type":"integer",` + words + `}}},
		"five":{"$ref":` + x + `},"six":{"$ref":` + q("#/$defs/"+strings.ReplaceAll(strings.ReplaceAll(text, "~", "~0"), "/", "~1")) + `},
		"seven":{"type":"array","items":{"type":"object","properties":{"a b":{"enum":[` + x + `,1.5,true,null]}},` + words + `}}},
		"dependentRequired":{` + x + `:[` + x + `]}}`
	return tool.Tool{
		ID: tool.ID{Upstream: "evil", Name: name}, Wire: text, Title: text, Description: text,
		Input: json.RawMessage(schema), Output: json.RawMessage(schema),
	}
}

func hostileUpstream() codegen.Upstream {
	texts := breakouts()
	up := codegen.Upstream{ID: "evil", Title: strings.Join(texts[:40], ""), Description: strings.Join(texts[40:200], "")}
	names := append([]string{"list", "str", "dict", "Any", "Literal", "TypedDict", "NotRequired", "with_aio", "_with_aio", "Result",
		"Blob", "TypeAlias", "typing", "TYPE_CHECKING", "sallyport", "servers", "builtins", "aio",
		"Promise", "Record", "annotations", "print", "os", "sys", "json", "importlib", "Array", "async", "get", "of"}, texts...)
	for _, text := range texts {
		up.Resources = append(up.Resources, tool.Resource{URI: text, Name: text, Description: text, MIME: text})
		up.Templates = append(up.Templates, tool.Template{URI: text, Title: text})
		up.Prompts = append(up.Prompts, tool.Prompt{Name: text, Title: text, Arguments: []tool.Argument{{Name: text, Required: true}, {Name: text}}})
	}
	slices.Reverse(up.Templates) // only the first are listed
	for i, id := range tool.Identifiers(names) {
		up.Tools = append(up.Tools, hostileTool(id, texts[i%len(texts)]))
	}
	return up
}

func TestHostileToolsAreValidJSON(t *testing.T) {
	for _, text := range breakouts() {
		if tl := hostileTool("x", text); !json.Valid(tl.Input) {
			t.Fatalf("the test's schema is broken: %.300s", tl.Input)
		}
	}
}

// TestPayloadsWork proves that the canary of the tests below can be planted.
func TestPayloadsWork(t *testing.T) {
	for _, c := range [][]string{{python3, "-c", pyPayload}, {"node", "-e", tsPayload}} {
		dir := t.TempDir()
		run(t, dir, c[0], c[1:]...)
		if !canaryExists(dir) {
			t.Errorf("%s: the payload planted nothing", c[0])
		}
	}
}

func canaryExists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "canary"))
	return err == nil
}

func TestHostileTextIsInertInPython(t *testing.T) {
	dir := guest(t, codegen.Generate([]codegen.Upstream{hostileUpstream()}))
	if out := run(t, dir, python3, "-W", "error", "audit.py", dir); out != "" {
		t.Errorf("not what a wrapper is made of:\n%.4000s", out)
	}
	if canaryExists(dir) {
		t.Error("importing the wrappers ran a payload")
	}
}

func TestHostileTextIsInertInTypeScript(t *testing.T) {
	up := hostileUpstream()
	dir := guest(t, codegen.Generate([]codegen.Upstream{up}))
	out := runTypeScript(t, dir, `import * as servers from "./servers/index";
		const modules = [servers.evil.resources.read, servers.evil.prompts.get];
		const names = Object.keys(servers.evil).filter((name) => name !== "resources" && name !== "prompts");
		for (const name of names) await0((servers.evil as any)[name]({}));
		function await0(p: Promise<unknown>) { p.catch((e) => console.log(e)); }
		console.log(names.length, modules.length);`)
	if want := fmt.Sprintln(len(up.Tools), 2); out != want {
		t.Errorf("exports %.500s, want %s", out, want)
	}
	if canaryExists(dir) {
		t.Error("importing and calling the wrappers ran a payload")
	}
}

func TestHostileTextIsCleanForTheModel(t *testing.T) {
	for _, tl := range hostileUpstream().Tools {
		for _, lang := range []codegen.Language{codegen.Python, codegen.TypeScript} {
			checkTexts(t, tl, lang)
		}
	}
}

// checkTexts checks what a model reads of a tool: bounded, clean, the signature on one line.
// checkParts: the parts of a description are where it says, whatever its texts look like.
func checkParts(t testing.TB, tl tool.Tool, d codegen.Description, head string) {
	t.Helper()
	if d.Text[:d.Signature] != head {
		t.Errorf("%s: the signature is said to end after %.300q", tl.ID, d.Text[:d.Signature])
	}
	end := -1
	for _, p := range d.Parameters {
		if !strings.HasPrefix(d.Text[p.From:p.To], "  "+p.Name) || p.From < d.Signature || end >= 0 && d.Text[end:p.From] != "\n" {
			t.Errorf("%s: parameter %q is said to be %.300q", tl.ID, p.Name, d.Text[p.From:p.To])
		}
		end = p.To
	}
}

func checkTexts(t testing.TB, tl tool.Tool, lang codegen.Language) {
	t.Helper()
	sig, description := codegen.Signature(tl, lang), codegen.Describe(tl, lang)
	all := description.Text
	checkParts(t, tl, description, codegen.Import(tl.ID, lang)+"\n"+sig)
	if n := utf8.RuneCountInString(sig); n > 1400 || strings.Contains(sig, "\n") || sig != sanitize.Line(sig, n) {
		t.Errorf("%s: signature of %d runes is not one clean line: %.300q", tl.ID, n, sig)
	}
	if len(all) > 10_000 || all != sanitize.Text(all, len(all)) {
		t.Errorf("%s: description of %d bytes is not clean: %.300q", tl.ID, len(all), all)
	}
	if !strings.HasPrefix(all, codegen.Import(tl.ID, lang)+"\n"+sig) {
		t.Errorf("%s: description does not begin with import and signature: %.300q", tl.ID, all)
	}
}
