package bundle

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// globalsHelper defines globals with accessors for variables of a module, so that functions and later
// programs share one variable. Until the module initializes a name, and if it fails before, the
// global keeps its previous value.
const globalsHelper = `((names) => {
	for (const [name, read, write] of names) {
		let old, known = false;
		try { known = name in globalThis; old = globalThis[name]; } catch {}
		const fail = (error, from) => { Error.captureStackTrace(error, from); throw error; };
		const get = () => {
			try {
				const now = read();
				if (now !== undefined) {
					old = undefined;
					return now;
				}
			} catch {
				if (!known) fail(new ReferenceError(name + " is not defined"), get);
			}
			return old;
		};
		const set = (value) => {
			if (!write) fail(new TypeError("Assignment to constant variable."), set);
			try { write(value); } catch { known = true; old = value; }
		};
		Object.defineProperty(globalThis, name, { configurable: true, enumerable: true, get, set });
	}
})`

// globalsHelperLine is keeper on one line.
var globalsHelperLine = regexp.MustCompile(`\n\t*`).ReplaceAllLiteralString(globalsHelper, " ")

// exposeGlobals prepends a line to a module that makes its top-level declarations globals, and adjusts the source map.
func exposeGlobals(code string, sourceMap []byte) (string, []byte) {
	names := declaredNames(code)
	if len(names) == 0 {
		return code, sourceMap
	}
	constant := constants(code, names)
	entries := make([]string, len(names))
	for i, name := range names {
		entries[i] = fmt.Sprintf("[%q, () => %s", name, name)
		if !constant[name] {
			entries[i] += fmt.Sprintf(", ($) => { %s = $; }", name)
		}
		entries[i] += "]"
	}
	mapped := bytes.Replace(sourceMap, []byte(`"mappings": "`), []byte(`"mappings": ";`), 1)
	return globalsHelperLine + "([" + strings.Join(entries, ", ") + "]);\n" + code, mapped
}

var (
	identifier = regexp.MustCompile(`[\p{L}\p{Nl}$_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}$]*`)
	redeclared = regexp.MustCompile(`^The symbol (".*") has already been declared$`)
)

// maxNames bounds the names of one program.
const maxNames = 5000

// declaredNames returns the sorted names that a module declares at its top level. It declares each word of the
// module once more and collects esbuild's errors about redeclarations.
func declaredNames(code string) []string {
	words := candidates(code)
	if len(words) == 0 {
		return nil
	}
	var names []string
	for _, m := range problems(code + "\nlet " + strings.Join(words, ", ") + ";") {
		found := redeclared.FindStringSubmatch(m.Text)
		if found == nil {
			continue
		}
		if name, err := strconv.Unquote(found[1]); err == nil && slices.Contains(words, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// candidates returns the words of a text that may be declared and become globals.
func candidates(code string) []string {
	words := identifier.FindAllString(code, -1)
	slices.Sort(words)
	words = slices.Compact(words)
	words = slices.DeleteFunc(words, func(word string) bool {
		return slices.Contains(reserved, word) || slices.Contains(protectedGlobals, word)
	})
	return words[:min(len(words), maxNames)]
}

// constants returns the names that cannot be assigned to.
func constants(code string, names []string) map[string]bool {
	first := strings.Count(code, "\n") + 2
	constant := map[string]bool{}
	for _, m := range problems(code + "\n" + strings.Join(names, " = 0;\n") + " = 0;\n") {
		if m.Location == nil || m.Location.Line < first || m.Location.Line >= first+len(names) {
			continue
		}
		constant[names[m.Location.Line-first]] = true
	}
	return constant
}

func problems(code string) []api.Message {
	result := api.Transform(code, api.TransformOptions{Loader: api.LoaderJS, Target: api.ESNext, Format: api.FormatESModule, LogLevel: api.LogLevelSilent})
	return append(result.Errors, result.Warnings...)
}

// reserved lists words that cannot be declared in a module.
var reserved = strings.Fields(`arguments await break case catch class const continue debugger default delete do else enum eval export extends
	false finally for function if implements import in instanceof interface let new null package private protected public return static
	super switch this throw true try typeof undefined var void while with yield`)

// protectedGlobals lists globals that the interpreter's own code needs. A program's declaration of one stays local to it.
var protectedGlobals = strings.Fields(`AggregateError Array ArrayBuffer BigInt Boolean Buffer DataView Date Error Function Infinity Int8Array JSON Map Math
	NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TextDecoder TextEncoder TypeError
	Uint8Array WeakMap WeakRef WeakSet clearImmediate clearInterval clearTimeout console global globalThis process queueMicrotask require
	setImmediate setInterval setTimeout`)
