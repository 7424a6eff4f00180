package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"
)

// workspaceNamespace is the esbuild namespace of workspace files, by path.
const workspaceNamespace = "workspace"

const (
	// maxFiles bounds the workspace files that a program imports, transitively; maxFileBytes bounds
	// their total size.
	maxFiles     = 2000
	maxFileBytes = 16 << 20
)

// files holds the workspace files that one program imports. It is safe for concurrent use, as esbuild requires.
type files struct {
	read    func(path string) ([]byte, bool)
	program string // path of the program
	mu      sync.Mutex
	found   map[string][]byte
	size    int
}

func isRelative(name string) bool {
	return strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") || name == "." || name == ".."
}

// resolve resolves a relative import as node and TypeScript do. ok is false if it is not a workspace file.
func (f *files) resolve(args api.OnResolveArgs, name string) (result api.OnResolveResult, ok bool) {
	if f.read == nil {
		return result, false
	}
	from := f.program
	if args.Namespace == workspaceNamespace {
		from = args.Importer
	}
	at := path.Join(path.Dir(from), name)
	if at == ".." || strings.HasPrefix(at, "../") {
		return result, false
	}
	for _, candidate := range candidatesOf(at) {
		switch data, err := f.file(candidate); {
		case err != nil:
			return api.OnResolveResult{Errors: []api.Message{{Text: err.Error() + hintMark + "import fewer of them, or read data with node:fs"}}}, true
		case data != nil:
			return api.OnResolveResult{Path: candidate, Namespace: workspaceNamespace}, true
		}
	}
	return result, false
}

// candidatesOf returns the paths that an import may refer to, the likeliest first.
func candidatesOf(at string) []string {
	list := []string{at, at + ".ts", at + ".mts", at + ".js", at + ".mjs", at + ".json", path.Join(at, "index.ts"), path.Join(at, "index.js")}
	if bare, isJS := strings.CutSuffix(at, ".js"); isJS {
		list = append(list, bare+".ts")
	}
	if bare, isJS := strings.CutSuffix(at, ".mjs"); isJS {
		list = append(list, bare+".mts")
	}
	return list
}

// file returns an importable file, nil if there is none at that path. It returns an error beyond the limits.
func (f *files) file(name string) ([]byte, error) {
	if loaderOf(name) == api.LoaderNone {
		return nil, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if data, ok := f.found[name]; ok {
		return data, nil
	}
	data, ok := f.read(name)
	if !ok {
		return nil, nil
	}
	if f.size += len(data); f.size > maxFileBytes || len(f.found) == maxFiles {
		return nil, fmt.Errorf("the program imports more than %d files or %d MiB", maxFiles, maxFileBytes>>20)
	}
	f.found[name] = append([]byte{}, data...)
	return f.found[name], nil
}

func (f *files) load(args api.OnLoadArgs) (api.OnLoadResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	contents := strings.TrimPrefix(string(f.found[args.Path]), "\ufeff")
	return api.OnLoadResult{Contents: &contents, Loader: loaderOf(args.Path)}, nil
}

// loaderOf returns the loader for a workspace file, LoaderNone if it cannot be imported.
func loaderOf(name string) api.Loader {
	switch path.Ext(name) {
	case ".ts", ".mts":
		return api.LoaderTS
	case ".js", ".mjs":
		return api.LoaderJS
	case ".json":
		return api.LoaderJSON
	}
	return api.LoaderNone
}

// setSourceName sets the source name in a source map to the program's file.
func setSourceName(sourceMap []byte, file string) []byte {
	quoted, err := json.Marshal(file)
	if file == "" || err != nil {
		return sourceMap
	}
	return bytes.Replace(sourceMap, []byte(`"`+Name+`"`), quoted, 1)
}
