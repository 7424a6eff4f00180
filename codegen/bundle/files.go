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

// workspaceSpace is the namespace of files of the workspace, by their paths there.
const workspaceSpace = "workspace"

const (
	// maxFiles is how many files of the workspace a program imports at most, with those that they import;
	// maxFileBytes is how long they are together.
	maxFiles     = 2000
	maxFileBytes = 16 << 20
)

// files are those of the workspace that one program imports. esbuild asks from several goroutines.
type files struct {
	read    func(path string) ([]byte, bool)
	program string // where the program is
	mu      sync.Mutex
	found   map[string][]byte
	size    int
}

func isRelative(name string) bool {
	return strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") || name == "." || name == ".."
}

// resolve finds what a relative import means, as node and TypeScript would; ok is false where that is no file of the workspace.
func (f *files) resolve(args api.OnResolveArgs, name string) (result api.OnResolveResult, ok bool) {
	if f.read == nil {
		return result, false
	}
	from := f.program
	if args.Namespace == workspaceSpace {
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
			return api.OnResolveResult{Path: candidate, Namespace: workspaceSpace}, true
		}
	}
	return result, false
}

// candidatesOf are the files that an import may mean, the likeliest first.
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

// file returns a file that can be imported, nil if there is none at that path; the error is for one too many.
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

// loaderOf says how a file of the workspace is read, LoaderNone if it cannot be imported.
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

// named gives the program the name of its file in a source map.
func named(sourceMap []byte, file string) []byte {
	quoted, err := json.Marshal(file)
	if file == "" || err != nil {
		return sourceMap
	}
	return bytes.Replace(sourceMap, []byte(`"`+Name+`"`), quoted, 1)
}
