package typecheck

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
)

// dialect has what is specific to one language's server, and which of its findings count.
type dialect struct {
	language Language
	file     string // the program, in Dir
	warm     string // a correct program, which makes the server load common modules
	files    []string
	// notifyChanges passes changes to notify, and reports whether the server restarts its analysis.
	notifyChanges func(notify func(method string, params any), changes []Change) bool
	codes         map[string]bool // codes that count
	certain       map[string]bool // those of them that are mistakes also in a program that succeeds
	rewrites      []rewriteRule
}

// rewriteRule shortens a message.
type rewriteRule struct {
	from *regexp.Regexp
	to   string
}

func (d dialect) uri() string { return "file://" + Dir + "/" + d.file }

const maxWarnings = 50

// maxMessageRunes is the maximum length of one warning.
const maxMessageRunes = 160

func dialects() map[Language]dialect {
	return map[Language]dialect{
		Python: {
			language: Python, file: "program.py", files: []string{"pyrightconfig.json"}, notifyChanges: notifyPyright, rewrites: pythonRewrites(),
			warm: "import asyncio, collections, datetime, json, math, os, re, typing\nimport sallyport, servers\n[str(1)]\n",
			codes: set("reportCallIssue", "reportArgumentType", "reportAttributeAccessIssue", "reportIndexIssue", "reportOperatorIssue",
				"reportOptionalMemberAccess", "reportOptionalSubscript", "reportOptionalIterable", "reportOptionalCall", "reportOptionalOperand",
				"reportTypedDictNotRequiredAccess", "reportUndefinedVariable", "reportUnboundVariable", "reportPossiblyUnbound",
				"reportPossiblyUnboundVariable", "reportUnusedCoroutine", "reportUnhashable", "reportUnnecessaryComparison"),
			certain: set("reportUnusedCoroutine", "reportUnnecessaryComparison"),
		},
		TypeScript: {
			language: TypeScript, file: "program.ts", files: []string{"tsconfig.json", "node.d.ts"}, notifyChanges: notifyTypeScript, rewrites: typescriptRewrites(),
			warm: "import * as s from \"sallyport\";\nimport { } from \"node:fs\";\n[String(s)];\n",
			codes: set("2304", "2305", "2552", "2614", "2724", // names that are not there
				"2339", "2551", "2353", "2561", "2559", "2739", "2740", "2741", // members and properties
				"2322", "2345", "2554", "2555", "2575", "2769", "2349", "2351", // calls and what they are given
				"2531", "2532", "2533", "18047", "18048", "2454", "2588", "2488", "2493", "2362", "2363", "2365", "2367", "2774", "2801", "1308"),
			certain: set("2339", "2551", "2365", "2367", "2801"),
		},
	}
}

func set(words ...string) map[string]bool {
	m := map[string]bool{}
	for _, word := range words {
		m[word] = true
	}
	return m
}

// notifyPyright has a changed file read again by opening and closing it, which drops what depends on it. Where
// files were added or have gone, what imports mean may be another: pyright looks at everything afresh.
func notifyPyright(notify func(string, any), changes []Change) bool {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return path.Ext(c.Path) != ".py" && path.Ext(c.Path) != ".pyi" })
	other := func(c Change) bool { return c.Added || c.Data == nil }
	if len(changes) > 64 || slices.ContainsFunc(changes, other) {
		notify("workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{}})
		return true
	}
	for _, c := range changes {
		document := func(version int, more map[string]any) map[string]any {
			return map[string]any{"uri": serversURI + c.Path, "languageId": "python", "version": version, "text": more["text"]}
		}
		notify("textDocument/didOpen", map[string]any{"textDocument": document(1, map[string]any{"text": ""})})
		notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": serversURI + c.Path, "version": 2}, "contentChanges": []any{map[string]any{"text": string(c.Data)}}})
		notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": serversURI + c.Path}})
	}
	return false
}

const serversURI = "file:///servers/"

// The kinds of change in the protocol.
const (
	created = 1 + iota
	modified
	deleted
)

func notifyTypeScript(notify func(string, any), changes []Change) bool {
	var list []any
	for _, c := range changes {
		if path.Ext(c.Path) != ".ts" {
			continue
		}
		kind := modified
		if c.Added {
			kind = created
		}
		if c.Data == nil {
			kind = deleted
		}
		list = append(list, map[string]any{"uri": serversURI + c.Path, "type": kind})
	}
	notify("workspace/didChangeWatchedFiles", map[string]any{"changes": list})
	return false
}

// warnings returns the findings that count, sorted by line, without duplicates.
func (d dialect) warnings(found []diagnostic) []Warning {
	var list []Warning
	missing := findMissing(found)
	for _, f := range found {
		if f.Severity > 2 || !d.codes[strings.Trim(string(f.Code), `"`)] || f.Range.Start.Line < 0 || f.Range.Start.Line > maxCode {
			continue
		}
		w := Warning{Line: f.Range.Start.Line + 1, Message: d.message(f, missing), Certain: d.isCertain(f)}
		if w.Message != "" && !slices.Contains(list, w) {
			list = append(list, w)
		}
		if len(list) == maxWarnings {
			break
		}
	}
	slices.SortStableFunc(list, func(a, b Warning) int { return a.Line - b.Line })
	return list
}

// uncertain matches findings about correct programs: members added to an object, and comparisons with None to be safe.
var uncertain = regexp.MustCompile(`on type '(?:never|unknown|object|\{.*)|"None" have no overlap`)

// isCertain reports whether a finding is a mistake also in a program that succeeds.
func (d dialect) isCertain(f diagnostic) bool {
	return d.certain[strings.Trim(string(f.Code), `"`)] && !uncertain.MatchString(f.Message)
}

// message returns the text of a finding, on one line.
func (d dialect) message(f diagnostic, missing []missingParameters) string {
	text := sanitize.Text(f.Message, 4000)
	if lines := strings.Split(text, "\n"); d.language == TypeScript { // the last line has the reason
		text = lines[len(lines)-1]
	} else {
		text = lines[0]
	}
	text = sanitize.Line(text, 1000)
	for _, w := range d.rewrites {
		if w.from.MatchString(text) {
			text = w.from.ReplaceAllString(text, w.to)
			break
		}
	}
	text = strings.TrimSuffix(longType.ReplaceAllStringFunc(text, shorten), ".")
	if near := suggestParameter(f, missing); near != "" {
		text += `; did you mean "` + near + `"?`
	}
	return sanitize.Line(text, maxMessageRunes)
}

var longType = regexp.MustCompile(`"[^"]{50,}"|'[^']{50,}'`)

func shorten(quoted string) string { return sanitize.Line(quoted, 40) + quoted[len(quoted)-1:] }

var (
	unknownPattern = regexp.MustCompile(`^No parameter named "([^"]+)"`)
	missingPattern = regexp.MustCompile(`^Arguments? missing for parameters? (".+")`)
	quotedInList   = regexp.MustCompile(`"([^"]+)"`)
)

// missingParameters has the missing parameters of a call.
type missingParameters struct {
	start, end int // its lines
	names      string
}

func findMissing(found []diagnostic) []missingParameters {
	var all []missingParameters
	for _, f := range found {
		if list := missingPattern.FindStringSubmatch(f.Message); list != nil {
			all = append(all, missingParameters{f.Range.Start.Line, f.Range.End.Line, list[1]})
		}
	}
	return all
}

// suggestParameter guesses which missing parameter of a call was misspelt: pyright reports the two separately.
func suggestParameter(f diagnostic, missing []missingParameters) string {
	wrong := unknownPattern.FindStringSubmatch(f.Message)
	if wrong == nil {
		return ""
	}
	for _, other := range missing {
		if other.start > f.Range.Start.Line || other.end < f.Range.Start.Line {
			continue
		}
		var names []string
		for _, name := range quotedInList.FindAllStringSubmatch(other.names, -1) {
			names = append(names, name[1])
		}
		return suggest.Of(wrong[1], names)
	}
	return ""
}

func pythonRewrites() []rewriteRule {
	return []rewriteRule{
		{regexp.MustCompile(`^No parameter named "(.+)"$`), `there is no parameter "$1"`},
		{regexp.MustCompile(`^Arguments? missing for parameters? (.+)$`), `$1 must be given`},
		{regexp.MustCompile(`^Argument of type "(.+)" cannot be assigned to parameter "([^"]+)" of type "(.+)" in function ".*"$`), `"$2" must be $3, not $1`},
		{regexp.MustCompile(`^Cannot access attribute "([^"]+)" for class "(.+)"$`), `$2 has no attribute "$1"`},
		{regexp.MustCompile(`^"([^"]+)" is unknown import symbol$`), `there is no "$1" to import`},
		{regexp.MustCompile(`^"([^"]+)" is not a known attribute of module "\.*(.+)"$`), `$2 has no "$1"`},
		{regexp.MustCompile(`^Condition will always evaluate to (True|False) since the types "(.+)" and "(.+)" have no overlap$`), `always $1: $2 compared with $3`},
		{regexp.MustCompile(`^Result of async function call is not used; use "await" or assign result to variable$`), `await is missing`},
	}
}

func typescriptRewrites() []rewriteRule {
	return []rewriteRule{
		{regexp.MustCompile(`^Object literal may only specify known properties, but '([^']+)' does not exist in type '.*'\. Did you mean to write '([^']+)'\?$`), `"$1" is not a property here; did you mean "$2"?`},
		{regexp.MustCompile(`^Object literal may only specify known properties, and '([^']+)' does not exist in type '.*'\.$`), `"$1" is not a property here`},
		{regexp.MustCompile(`^Property '([^']+)' is missing in type '.*' but required in type '.*'\.$`), `"$1" must be given`},
		{regexp.MustCompile(`^This comparison appears to be unintentional because the types '(.+)' and '(.+)' have no overlap\.$`), `$1 compared with $2: never equal`},
		{regexp.MustCompile(`^This condition will always return true since this 'Promise<.*>' is always defined\.$`), `a Promise is always true: await is missing`},
		{regexp.MustCompile(`^Operator '(.+)' cannot be applied to types '(.*Promise<.*)' and '(.+)'\.$`), `a Promise has no $1: await is missing`},
		{regexp.MustCompile(`^Property '([^']+)' does not exist on type 'Promise<.*>'\.$`), `a Promise has no "$1": is await missing?`},
		{regexp.MustCompile(`^Property '([^']+)' does not exist on type 'typeof import\("/?(.+?)(?:/index)?"\)'\. Did you mean '([^']+)'\?$`), `$2 has no "$1"; did you mean "$3"?`},
		{regexp.MustCompile(`^Property '([^']+)' does not exist on type 'typeof import\("/?(.+?)(?:/index)?"\)'\.$`), `$2 has no "$1"`},
		{regexp.MustCompile(`^Type '.*' is missing the following properties from type '.*': (.+)$`), `these must be given: $1`},
		{regexp.MustCompile(`^(?:Argument of type|Type) '(.+)' is not assignable to (?:parameter of )?type '(.+)'\.$`), `$2 is expected, not $1`},
	}
}
