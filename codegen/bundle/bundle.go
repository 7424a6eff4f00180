// Package bundle turns a model's TypeScript program into the one JavaScript
// module that a sandbox runs: types are dropped, wrappers under "servers" and
// the module "sallyport" are bundled in, and the value of a trailing expression
// becomes the default export. It uses esbuild, in the gateway's own process.
//
// The program is untrusted, so nothing it says may make esbuild read a file:
// every import is resolved here, from memory, or refused.
package bundle

import (
	"encoding/base64"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// Name is what a program is called in errors and stack traces.
const Name = "program.ts"

// Tree is the generated servers/ tree: File returns the source at a path such
// as "memory/index.ts", and List the names of the tools of an upstream, or of
// the upstreams for "".
type Tree interface {
	File(path string) ([]byte, bool)
	List(upstream string) []string
}

// Error is what is wrong with a program before it runs.
type Error struct {
	// Type is "SyntaxError" or "ImportError".
	Type    string
	Message string
	// File is the one that the program imports which is wrong, "skills/name/skill.ts" or a path in the workspace; "" is the program.
	File string
	// Line counts from 1; 0 where it is not known.
	Line int
	// Source is the text of that line.
	Source string
	Hint   string
	// Package is the one of npm that an import did not find, "" if it is something else.
	Package string
}

// Error returns "Type: message".
func (e *Error) Error() string { return e.Type + ": " + e.Message }

// Options configure a compilation; nil means all defaults.
type Options struct {
	// Session makes what the program declares at its top level a global of the interpreter, for the programs after it.
	Session bool
	// Packages reports whether the sandbox has a package of npm by that name; nil: it has none.
	Packages func(name string) bool
	// Skills returns the files of a skill by the name in its import, "skills/NAME": skill.ts and what
	// it imports next to it. An error is passed on, with its hint if it is a *tool.Error. nil: there are none.
	Skills func(name string) (map[string][]byte, error)
	// File is where the program is in the workspace, which its relative imports start from; "" is the workspace itself.
	File string
	// Files returns a file of the workspace by its slash-separated path; nil: there are none.
	Files func(path string) ([]byte, bool)
}

// Compile compiles a program. runtime is the source of the module "sallyport".
// A program that is wrong gives an *Error for the first thing wrong with it.
func Compile(program string, tree Tree, runtime []byte, opts *Options) (string, error) {
	if opts == nil {
		opts = &Options{}
	}
	if opts.Session {
		// A program may import for the ones after it, which no other one can tell from the import of a type.
		if code, err := compile(program, newResolver(tree, runtime, opts), everyImport, true); err == nil {
			return code, nil
		}
	}
	return compile(program, newResolver(tree, runtime, opts), usedImports, opts.Session)
}

// What becomes of imports that nothing uses; in TypeScript they may be of types.
const (
	usedImports = `{}`
	everyImport = `{"compilerOptions":{"verbatimModuleSyntax":true}}`
)

func compile(program string, r resolver, imports string, session bool) (string, error) {
	code, sourceMap, wrongSyntax := script(program, imports)
	if wrongSyntax != nil {
		return "", wrongSyntax
	}
	sourceMap = named(sourceMap, r.workspace.program)
	if session {
		code, sourceMap = keep(code, sourceMap)
	}
	captured, hasValue := captureValue(code)
	if !needsBuild.MatchString(code) {
		return captured + mapComment(sourceMap), nil
	}
	built := api.BuildResult{}
	if hasValue {
		built = r.build(captured+mapComment(sourceMap), api.LoaderJS)
	}
	if len(built.OutputFiles) != 1 || len(built.Errors) > 0 { // no value to capture, or a default export besides it
		built = r.build(code+mapComment(sourceMap), api.LoaderJS)
	}
	wrong := mistakes(built)
	if len(wrong) == 0 {
		return string(built.OutputFiles[0].Contents), nil
	}
	// Once more from the program itself, so that the error has its line.
	if original := mistakes(r.build(program, api.LoaderTS)); len(original) > 0 {
		wrong = original
	}
	return "", r.explain(wrong[0])
}

// needsBuild are words without which a program has nothing that is to be bundled, or to be made simpler for node.
var needsBuild = regexp.MustCompile(`import|export|require|module|using|@`)

// script drops the types of a program.
func script(program, imports string) (code string, sourceMap []byte, wrong error) {
	options := api.TransformOptions{
		Loader: api.LoaderTS, Target: api.ESNext, Sourcefile: Name, Sourcemap: api.SourceMapExternal, Charset: api.CharsetUTF8,
		SourcesContent: api.SourcesContentExclude, LegalComments: api.LegalCommentsNone, TsconfigRaw: imports, LogLevel: api.LogLevelSilent,
	}
	result := api.Transform(program, options)
	if len(result.Errors) > 0 {
		return "", nil, syntaxError(result.Errors[0])
	}
	if e := returned(program); e != nil {
		return "", nil, e
	}
	return string(result.Code), result.Map, nil
}

// mistakes are esbuild's errors, and a warning that is one for us: a tool that
// its upstream does not have, called by way of a namespace.
func mistakes(built api.BuildResult) []api.Message {
	wrong := built.Errors
	for _, warning := range built.Warnings {
		if warning.ID == "import-is-undefined" && undefinedImport.MatchString(warning.Text) {
			wrong = append(wrong, warning)
		}
	}
	return wrong
}

// returned finds a return outside of functions, which esbuild takes for that of a CommonJS module where nothing else
// says that the program is none: the value would be lost.
func returned(program string) *Error {
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
	case strings.HasPrefix(at.File, skillsSpace+":"):
		e.File = strings.Replace(at.File, ":", "/", 1)
	case strings.HasPrefix(at.File, workspaceSpace+":"):
		e.File = strings.TrimPrefix(at.File, workspaceSpace+":")
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
