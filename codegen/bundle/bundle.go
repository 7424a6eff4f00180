// Package bundle compiles a model's TypeScript program to a single JavaScript
// module for a sandbox: it strips types, bundles the wrappers under "servers" and
// the module "sallyport", and makes the value of a trailing expression the default
// export. It runs esbuild in the gateway's process.
//
// The program is untrusted, so it must not make esbuild read a file: this package
// resolves every import from memory, or rejects it.
package bundle

import (
	"encoding/base64"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// Name is the file name of a program in errors and stack traces.
const Name = "program.ts"

// Tree is the generated servers/ tree: File returns the source at a path such
// as "memory/index.ts", and List the names of the tools of an upstream, or of
// the upstreams for "".
type Tree interface {
	File(path string) ([]byte, bool)
	List(upstream string) []string
}

// Error is a compile-time error of a program.
type Error struct {
	// Type is "SyntaxError" or "ImportError".
	Type    string
	Message string
	// File is the imported file with the error, "skills/name/skill.ts" or a path in the workspace; "" is the program.
	File string
	// Line counts from 1; 0 means unknown.
	Line int
	// Source is the text of that line.
	Source string
	Hint   string
	// Package is the missing npm package of an import, else "".
	Package string
}

// Error returns "Type: message".
func (e *Error) Error() string { return e.Type + ": " + e.Message }

// Options configure a compilation; nil means all defaults.
type Options struct {
	// Session makes the program's top-level declarations globals of the interpreter, for later programs.
	Session bool
	// Packages reports whether the sandbox has an npm package; nil means that it has none.
	Packages func(name string) bool
	// Skills returns the files of a skill by the NAME of its import "skills/NAME": skill.ts and the files
	// that it imports. The Error of Compile has its error, and the hint of a *tool.Error. nil means no skills.
	Skills func(name string) (map[string][]byte, error)
	// File is the path of the program in the workspace, the base of its relative imports; "" means the workspace's root.
	File string
	// Files returns a file of the workspace by its slash-separated path; nil means no files.
	Files func(path string) ([]byte, bool)
}

// Compile compiles a program. runtime is the source of the module "sallyport".
// For an invalid program it returns an *Error about the first problem.
func Compile(program string, tree Tree, runtime []byte, opts *Options) (string, error) {
	if opts == nil {
		opts = &Options{}
	}
	if opts.Session {
		// A program may import values for later programs, so unused imports are kept unless they are of types.
		if code, err := compile(program, newResolver(tree, runtime, opts), everyImport, true); err == nil {
			return code, nil
		}
	}
	return compile(program, newResolver(tree, runtime, opts), usedImports, opts.Session)
}

// Compiler options for unused imports, which in TypeScript may be imports of types.
const (
	usedImports = `{}`
	everyImport = `{"compilerOptions":{"verbatimModuleSyntax":true}}`
)

func compile(program string, r resolver, imports string, session bool) (string, error) {
	code, sourceMap, wrongSyntax := script(program, imports)
	if wrongSyntax != nil {
		return "", wrongSyntax
	}
	sourceMap = setSourceName(sourceMap, r.workspace.program)
	if session {
		code, sourceMap = exposeGlobals(code, sourceMap)
	}
	captured, hasValue := captureValue(code)
	if !needsBuild.MatchString(code) {
		return captured + mapComment(sourceMap), nil
	}
	built := api.BuildResult{}
	if hasValue {
		built = r.build(captured+mapComment(sourceMap), api.LoaderJS)
	}
	if len(built.OutputFiles) != 1 || len(built.Errors) > 0 { // no value to capture, or the program has a default export
		built = r.build(code+mapComment(sourceMap), api.LoaderJS)
	}
	wrong := mistakes(built)
	if len(wrong) == 0 {
		return string(built.OutputFiles[0].Contents), nil
	}
	// Build the original program, so that the error has its line.
	if original := mistakes(r.build(program, api.LoaderTS)); len(original) > 0 {
		wrong = original
	}
	return "", r.explain(wrong[0])
}

// needsBuild matches words of programs that need bundling, or lowering of syntax for node.
var needsBuild = regexp.MustCompile(`import|export|require|module|using|@`)

// script strips the types of a program.
func script(program, imports string) (code string, sourceMap []byte, wrong error) {
	options := api.TransformOptions{
		Loader: api.LoaderTS, Target: api.ESNext, Sourcefile: Name, Sourcemap: api.SourceMapExternal, Charset: api.CharsetUTF8,
		SourcesContent: api.SourcesContentExclude, LegalComments: api.LegalCommentsNone, TsconfigRaw: imports, LogLevel: api.LogLevelSilent,
	}
	result := api.Transform(program, options)
	problem := findTopLevelReturn(program)
	if len(result.Errors) > 0 {
		problem = syntaxError(result.Errors[0])
	}
	if problem == nil {
		return string(result.Code), result.Map, nil
	}
	if strings.HasPrefix(problem.Message, topReturn) {
		returned := api.Transform(exportReturn(program), options)
		if len(returned.Errors) == 0 && findTopLevelReturn(exportReturn(program)) == nil {
			return string(returned.Code), returned.Map, nil
		}
	}
	return "", nil, problem
}

// mistakes returns esbuild's errors, and the warnings that are errors here: a call of a
// nonexistent tool through a namespace import.
func mistakes(built api.BuildResult) []api.Message {
	wrong := built.Errors
	for _, warning := range built.Warnings {
		if warning.ID == "import-is-undefined" && undefinedImport.MatchString(warning.Text) {
			wrong = append(wrong, warning)
		}
	}
	return wrong
}

// lastReturn matches the return statement at the end of a program that is written as the body of a function.
var lastReturn = regexp.MustCompile(`(?m)^return\b([ \t(\[{])`)

// exportReturn makes the value of a program of the statement that returns it at its end, as in a function's body. It keeps
// the lines. The result may be no valid program.
func exportReturn(program string) string {
	found := lastReturn.FindAllStringSubmatchIndex(program, -1)
	if len(found) == 0 {
		return program
	}
	last := found[len(found)-1]
	return program[:last[0]] + "export default " + program[last[2]:]
}

// findTopLevelReturn returns an error for a top-level return, which esbuild accepts if the program could be a CommonJS module:
// its value would be lost.
func findTopLevelReturn(program string) *Error {
	if !strings.Contains(program, "return") {
		return nil
	}
	module := api.Transform(program+"\nexport {};", api.TransformOptions{Loader: api.LoaderTS, Target: api.ESNext, Sourcefile: Name, LogLevel: api.LogLevelSilent})
	if len(module.Errors) > 0 && strings.HasPrefix(module.Errors[0].Text, topReturn) {
		return syntaxError(module.Errors[0])
	}
	return nil
}

const topReturn = "Top-level return"

func (r resolver) build(code string, loader api.Loader) api.BuildResult {
	return api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: code, Sourcefile: Name, Loader: loader},
		Bundle: true, Format: api.FormatESModule, Platform: api.PlatformNode, Target: api.ES2022,
		Sourcemap: api.SourceMapInline, SourcesContent: api.SourcesContentExclude, LegalComments: api.LegalCommentsNone,
		AbsWorkingDir: "/", Outfile: "/program.mjs", Write: false, LogLevel: api.LogLevelSilent, Charset: api.CharsetUTF8,
		TsconfigRaw: `{"compilerOptions":{"verbatimModuleSyntax":true}}`,
		Plugins:     []api.Plugin{{Name: "sallyport", Setup: r.setup}},
	})
}

func mapComment(sourceMap []byte) string {
	return "//# sourceMappingURL=data:application/json;base64," + base64.StdEncoding.EncodeToString(sourceMap) + "\n"
}

func syntaxError(m api.Message) *Error {
	e := &Error{Type: "SyntaxError", Message: m.Text}
	if strings.HasPrefix(m.Text, topReturn) {
		e.Hint = "end with an expression: its value comes back"
	}
	e.place(m.Location)
	return e
}

func (e *Error) place(at *api.Location) {
	switch {
	case at == nil:
		return
	case strings.HasPrefix(at.File, skillsNamespace+":"):
		e.File = strings.Replace(at.File, ":", "/", 1)
	case strings.HasPrefix(at.File, workspaceNamespace+":"):
		e.File = strings.TrimPrefix(at.File, workspaceNamespace+":")
	}
	if e.File != "" {
		at = &api.Location{File: Name, Line: at.Line, LineText: at.LineText}
	}
	if at == nil || !strings.HasSuffix(at.File, Name) {
		return
	}
	e.Line, e.Source = at.Line, strings.TrimSpace(at.LineText)
	if len(e.Source) > 200 {
		e.Source = strings.ToValidUTF8(e.Source[:200], "") + "…"
	}
}
