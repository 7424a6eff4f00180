// Package client generates a servers/ tree for programs outside of a sandbox, together with
// the module "sallyport", which has the same functions as in a sandbox. Calls go over HTTP to
// a running gateway.
package client

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"

	"sallyport/codegen"
	guest "sallyport/codegen/runtime"
)

// Files returns all files by slash-separated path, of a language or, for "", of both:
// "servers/memory/read_graph.py", "sallyport/client.py". tree is the servers/ tree from codegen.
// TypeScript wrappers are included both as source, for type checkers, and compiled, for node.
// Output is deterministic.
func Files(tree map[string][]byte, lang codegen.Language) (map[string][]byte, error) {
	files := map[string][]byte{}
	if lang != codegen.TypeScript {
		if err := addPython(tree, files); err != nil {
			return nil, err
		}
	}
	if lang != codegen.Python {
		if err := addTypeScript(tree, files); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func addPython(tree, files map[string][]byte) error {
	for name, data := range tree {
		if strings.HasSuffix(name, ".py") {
			files["servers/"+name] = data
		}
	}
	if err := fs.WalkDir(guest.Guest(), "sallyport", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == "sallyport/bridge.py" { // the bridge needs a sandbox
			return err
		}
		files[name], err = fs.ReadFile(guest.Guest(), name)
		return err
	}); err != nil {
		return fmt.Errorf("read guest: %w", err)
	}
	own := map[string][]byte{}
	for _, name := range []string{"client.py", "tail.py", "tail.pyi", "README.md"} {
		data, err := fs.ReadFile(guest.Client(), "python/"+name)
		if err != nil {
			return fmt.Errorf("read client: %w", err)
		}
		own[name] = data
	}
	files["sallyport/client.py"] = own["client.py"]
	files["sallyport/__init__.py"] = join(files["sallyport/__init__.py"], own["tail.py"])
	files["sallyport/__init__.pyi"] = join(guest.PythonTypes, own["tail.pyi"])
	files["sallyport/py.typed"] = []byte{}
	files["sallyport/PYTHON.md"] = own["README.md"]
	return nil
}

func join(a, b []byte) []byte { return append(append([]byte{}, a...), b...) }

func addTypeScript(tree, files map[string][]byte) error {
	manifest := func(members map[string]any) []byte {
		members["type"], members["private"] = "module", true
		data, _ := json.MarshalIndent(members, "", "  ") // strings can be marshaled
		return append(data, '\n')
	}
	files["servers/package.json"] = manifest(map[string]any{"name": "servers"})
	files["sallyport/package.json"] = manifest(map[string]any{
		"name": "sallyport", "version": "1.0.0", "exports": map[string]any{".": map[string]string{"types": "./index.d.ts", "default": "./index.js"}},
	})
	bundled, types, err := buildModule()
	if err != nil {
		return err
	}
	files["sallyport/index.js"], files["sallyport/index.d.ts"] = bundled, types
	if files["sallyport/TYPESCRIPT.md"], err = fs.ReadFile(guest.Client(), "typescript/README.md"); err != nil {
		return fmt.Errorf("read client: %w", err)
	}
	return addWrappers(tree, files)
}

// addWrappers adds the wrappers with imports that node resolves, as source and compiled.
func addWrappers(tree, files map[string][]byte) error {
	var names []string
	for name := range tree {
		if strings.HasSuffix(name, ".ts") {
			names = append(names, name)
		}
	}
	sources, compiled, faults := make([][]byte, len(names)), make([][]byte, len(names)), make([]error, len(names))
	var work sync.WaitGroup
	for worker := range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for i := worker; i < len(names); i += runtime.GOMAXPROCS(0) {
				sources[i] = resolveImports(tree, names[i])
				compiled[i], faults[i] = stripTypes(sources[i])
			}
		})
	}
	work.Wait()
	for i, name := range names {
		if faults[i] != nil {
			return fmt.Errorf("compile %s: %w", name, faults[i])
		}
		files["servers/"+name] = sources[i]
		files["servers/"+strings.TrimSuffix(name, ".ts")+".js"] = compiled[i]
	}
	return nil
}

// imports matches the import and export lines of a wrapper. They begin at the start of a line,
// where no text of an upstream can begin.
var imports = regexp.MustCompile(`(?m)^((?:import|export) (?:[^'"\n]* )?from )"(sallyport|\.{1,2}/[\w./]*)";$`)

// resolveImports replaces the module names in imports by relative paths of files, as node requires.
func resolveImports(tree map[string][]byte, name string) []byte {
	return imports.ReplaceAllFunc(tree[name], func(line []byte) []byte {
		found := imports.FindSubmatch(line)
		target := strings.TrimSuffix(string(found[2]), ".js")
		at := path.Join(path.Dir(name), target)
		switch {
		case target == "sallyport":
			target = strings.Repeat("../", strings.Count(name, "/")+1) + "sallyport/index"
		case tree[at+".ts"] == nil && tree[at+"/index.ts"] != nil:
			target += "/index"
		}
		return []byte(string(found[1]) + `"` + target + `.js";`)
	})
}

func stripTypes(source []byte) ([]byte, error) {
	built := api.Transform(string(source), api.TransformOptions{Loader: api.LoaderTS, Format: api.FormatESModule, Target: api.ES2022, LogLevel: api.LogLevelSilent})
	if len(built.Errors) > 0 {
		return nil, fmt.Errorf("%s", built.Errors[0].Text)
	}
	return built.Code, nil
}
