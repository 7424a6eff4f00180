package bundle

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"sallyport/internal/suggest"
)

// resolver resolves all imports of a program.
type resolver struct {
	tree     Tree
	runtime  []byte
	packages func(name string) bool
	skills   *skills
	// workspace is never nil.
	workspace *files
}

func newResolver(tree Tree, runtime []byte, opts *Options) resolver {
	return resolver{
		tree, runtime, opts.Packages, &skills{find: opts.Skills, found: map[string]map[string][]byte{}},
		&files{read: opts.Files, program: opts.File, found: map[string][]byte{}},
	}
}

// The esbuild namespaces of modules that are served from memory.
const (
	serversNamespace = "servers"
	runtimeNamespace = "sallyport"
)

func (r resolver) setup(build api.PluginBuild) {
	build.OnResolve(api.OnResolveOptions{Filter: ".*"}, r.resolve)
	build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: serversNamespace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		data, ok := r.tree.File(args.Path)
		if !ok {
			return api.OnLoadResult{}, fmt.Errorf("no wrapper %s", args.Path)
		}
		return loadTypeScript(data), nil
	})
	build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: runtimeNamespace}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
		return loadTypeScript(r.runtime), nil
	})
	build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: discoveryNamespace}, r.loadDiscovery)
	build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: skillsNamespace}, r.skills.load)
	build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: workspaceNamespace}, r.workspace.load)
	// Reject all other paths: esbuild's own loader would read the host's files.
	build.OnLoad(api.OnLoadOptions{Filter: ".*"}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
		return api.OnLoadResult{}, fmt.Errorf("not a file of this program")
	})
}

func loadTypeScript(data []byte) api.OnLoadResult {
	contents := string(data)
	return api.OnLoadResult{Contents: &contents, Loader: api.LoaderTS}
}

func (r resolver) resolve(args api.OnResolveArgs) (api.OnResolveResult, error) {
	name := args.Path
	switch {
	case args.Kind == api.ResolveEntryPoint:
		return api.OnResolveResult{Path: name}, nil
	case args.Namespace == serversNamespace && strings.HasPrefix(name, "."):
		return r.resolveWrapper(path.Join(path.Dir(args.Importer), name))
	case isSkill(args):
		return r.skills.resolveImport(args)
	case isRelative(name) && args.Namespace != serversNamespace && args.Namespace != runtimeNamespace:
		return r.resolveRelative(args, name)
	case name == "sallyport":
		return api.OnResolveResult{Path: "sallyport.ts", Namespace: runtimeNamespace, SideEffects: api.SideEffectsFalse}, nil
	case r.isServerFile(name):
		return r.resolveServerFile(strings.TrimPrefix(name, serverFiles))
	case name == "servers" || strings.HasPrefix(name, "servers/"):
		return r.resolveWrapper(strings.TrimPrefix(strings.TrimPrefix(name, "servers"), "/"))
	case r.isExternal(args.Namespace, name):
		return api.OnResolveResult{Path: name, External: true}, nil // absolute paths refer to the sandbox
	}
	return refuse(fmt.Sprintf("cannot import %q", name), r.importHint(name))
}

// isExternal reports whether node resolves an import in the sandbox.
func (r resolver) isExternal(namespace, name string) bool {
	return isBuiltin(name) || strings.HasPrefix(name, "/") || r.packages != nil && namespace != serversNamespace && r.packages(packageOf(name))
}

// resolveRelative resolves a relative import of the program or of a workspace file.
func (r resolver) resolveRelative(args api.OnResolveArgs, name string) (api.OnResolveResult, error) {
	if found, ok := r.workspace.resolve(args, name); ok {
		return found, nil
	}
	if rest, ok := strings.CutPrefix(name, "./servers/"); ok && args.Namespace != workspaceNamespace {
		return r.resolveServerFile(rest)
	}
	return refuse(fmt.Sprintf("cannot import %q", name), r.fileHint(name))
}

// packageOf returns the package of an import such as "@scope/name/file".
func packageOf(name string) string {
	parts := strings.SplitN(name, "/", 3)
	if strings.HasPrefix(name, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// resolveWrapper resolves a path below servers/ as node does: the file, the file with extension, the folder's index.
func (r resolver) resolveWrapper(name string) (api.OnResolveResult, error) {
	name = strings.TrimSuffix(path.Clean("/" + name)[1:], ".js")
	for _, candidate := range []string{name, name + ".ts", path.Join(name, "index.ts")} {
		if !strings.HasSuffix(candidate, ".ts") {
			continue
		}
		if _, ok := r.tree.File(candidate); ok {
			return api.OnResolveResult{Path: candidate, Namespace: serversNamespace, SideEffects: api.SideEffectsFalse}, nil
		}
	}
	upstream, tool, isTool := strings.Cut(name, "/")
	if isTool && len(r.tree.List(upstream)) > 0 {
		return refuse(fmt.Sprintf("servers/%s has no tool %s", upstream, tool), didYouMean(tool, r.tree.List(upstream), "find it with search_tools"))
	}
	near := suggest.Of(upstream, r.tree.List(""))
	if near == "" {
		return refuse(fmt.Sprintf("no upstream servers/%s", upstream), "there are: "+strings.Join(firstOf(r.tree.List(""), 20), ", "))
	}
	return refuse(fmt.Sprintf("no upstream servers/%s", upstream), "did you mean servers/"+near+"?")
}

// importHint returns the hint for an unresolved import.
func (r resolver) importHint(name string) string {
	upstream, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimLeft(name, "./"), "servers/"), "/")
	if slices.Contains(r.tree.List(""), upstream) {
		return fmt.Sprintf(`write: from "servers/%s"`, upstream)
	}
	return notInstalled
}

// fileHint returns the hint for an unresolved relative import.
func (r resolver) fileHint(name string) string {
	if hint := r.importHint(name); hint != notInstalled || r.workspace.read == nil {
		return hint
	}
	return "no such file in /workspace"
}

const notInstalled = `only node's own modules, "servers/..." and "sallyport" can be imported`

// hintMark separates message and hint in the text of an esbuild error.
const hintMark = "\x00"

func refuse(message, hint string) (api.OnResolveResult, error) {
	return api.OnResolveResult{Errors: []api.Message{{Text: message + hintMark + hint}}}, nil
}

var (
	missingPackage   = regexp.MustCompile(`^cannot import "(.+)"$`)
	missingExport    = regexp.MustCompile(`^No matching export in "servers:(\w+)/(index|resources|prompts)\.ts" for import "(.+)"$`)
	missingInFile    = regexp.MustCompile(`^No matching export in "workspace:(.+)" for import "(.+)"$`)
	missingInRuntime = regexp.MustCompile(`^No matching export in "sallyport:sallyport\.ts" for import "(.+)"$`)
	missingInSkill   = regexp.MustCompile(`^No matching export in "skills:([\w-]+)/skill\.ts" for import "(.+)"$`)
	runtimeExport    = regexp.MustCompile(`(?m)^export (?:declare )?(?:async )?(?:function|class|const) (\w+)`)
	undefinedImport  = regexp.MustCompile(`^Import "(.+)" will always be undefined because there is no matching export in "servers:(\w+)/(index|resources|prompts)\.ts"$`)
)

// explain converts esbuild's message to an Error for the model.
func (r resolver) explain(m api.Message) *Error {
	e := &Error{Type: "ImportError"}
	e.Message, e.Hint, _ = strings.Cut(m.Text, hintMark)
	e.place(m.Location)
	if found := missingInFile.FindStringSubmatch(m.Text); found != nil {
		e.Message = fmt.Sprintf("%s has no export %s", found[1], found[2])
	} else if e.File != "" && !strings.Contains(m.Text, hintMark) {
		e.Type = "SyntaxError"
	}
	if found := missingPackage.FindStringSubmatch(e.Message); found != nil && e.Hint == notInstalled {
		e.Package = packageOf(found[1])
	}
	if found := missingExport.FindStringSubmatch(m.Text); found != nil {
		r.explainMissing(e, found[1], found[2], found[3])
	}
	if found := missingInRuntime.FindStringSubmatch(m.Text); found != nil {
		e.Message = "sallyport has no " + found[1]
		e.Hint = didYouMean(found[1], r.runtimeExports(), `search_tools(upstream="sallyport") lists what it has`)
	}
	if found := missingInSkill.FindStringSubmatch(m.Text); found != nil {
		e.Message = fmt.Sprintf("skills/%s has no %s", found[1], found[2])
		e.Hint = didYouMean(found[2], r.skills.exports(found[1]), "load_skill(\""+found[1]+"\") shows what it has")
	}
	if found := undefinedImport.FindStringSubmatch(m.Text); found != nil {
		r.explainMissing(e, found[2], found[3], found[1])
	}
	return e
}

// runtimeExports returns the exports of the module "sallyport".
func (r resolver) runtimeExports() []string {
	var names []string
	for _, found := range runtimeExport.FindAllSubmatch(r.runtime, -1) {
		names = append(names, string(found[1]))
	}
	return names
}

// explainMissing sets the message and hint for a missing export of an upstream's module.
func (r resolver) explainMissing(e *Error, upstream, module, name string) {
	switch {
	case module == "resources":
		e.Message, e.Hint = fmt.Sprintf("resources has no function %s", name), "it has read(uri), list() and templates()"
	case module == "prompts":
		e.Message, e.Hint = fmt.Sprintf("prompts has no function %s", name), "it has get(name, arguments) and list()"
	case name == "default":
		e.Message, e.Hint = fmt.Sprintf("servers/%s has no default export", upstream), fmt.Sprintf(`write: import * as %s from "servers/%[1]s"`, upstream)
	case name == "resources" || name == "prompts":
		e.Message, e.Hint = fmt.Sprintf("servers/%s offers no %s", upstream, name), ""
	default:
		e.Message = fmt.Sprintf("servers/%s has no tool %s", upstream, name)
		e.Hint = didYouMean(name, r.tree.List(upstream), "find it with search_tools")
	}
}

func didYouMean(word string, names []string, otherwise string) string {
	if near := suggest.Of(word, names); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

func firstOf(names []string, n int) []string { return names[:min(n, len(names))] }

var builtins = strings.Fields(`assert assert/strict async_hooks buffer child_process cluster console constants crypto
	dgram diagnostics_channel dns dns/promises domain events fs fs/promises http http2 https inspector module net os
	path path/posix path/win32 perf_hooks process punycode querystring readline readline/promises repl stream
	stream/consumers stream/promises stream/web string_decoder sys timers timers/promises tls trace_events tty url
	util util/types v8 vm wasi worker_threads zlib`)

func isBuiltin(name string) bool {
	return strings.HasPrefix(name, "node:") || slices.Contains(builtins, name)
}
