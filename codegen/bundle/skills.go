package bundle

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"

	"sallyport/internal/tool"
)

// skillsNamespace is the esbuild namespace of the files of skills, such as "weekly_report/skill.ts".
const skillsNamespace = "skills"

// skills holds the skills that one program imports. It is safe for concurrent use, as esbuild requires.
type skills struct {
	find  func(name string) (map[string][]byte, error)
	mu    sync.Mutex
	found map[string]map[string][]byte // by module
}

// files returns the files of a skill. It caches them for the compilation.
func (s *skills) files(module string) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if files, ok := s.found[module]; ok {
		return files, nil
	}
	if s.find == nil {
		return nil, errors.New("no skills available")
	}
	files, err := s.find(module)
	if err == nil {
		s.found[module] = files
	}
	return files, err
}

// isSkill reports whether an import is of a skill, or a relative one inside a skill.
func isSkill(args api.OnResolveArgs) bool {
	return args.Namespace == skillsNamespace && strings.HasPrefix(args.Path, ".") || strings.HasPrefix(args.Path, skillsNamespace+"/")
}

func (s *skills) resolveImport(args api.OnResolveArgs) (api.OnResolveResult, error) {
	if strings.HasPrefix(args.Path, ".") {
		return s.resolveRelative(args.Importer, args.Path)
	}
	return s.resolve(strings.TrimPrefix(args.Path, skillsNamespace+"/"))
}

// resolve resolves "name" or "name/file".
func (s *skills) resolve(name string) (api.OnResolveResult, error) {
	module, file, _ := strings.Cut(path.Clean("/" + name)[1:], "/")
	module = strings.ReplaceAll(module, "-", "_")
	files, err := s.files(module)
	if err != nil {
		hint := ""
		if e, ok := errors.AsType[*tool.Error](err); ok {
			return refuse(e.Message, e.Hint)
		}
		return refuse(err.Error(), hint)
	}
	if file == "" {
		file = "skill.ts"
	}
	for _, candidate := range []string{file, file + ".ts", strings.TrimSuffix(file, ".js") + ".ts", path.Join(file, "index.ts"), file + ".js", file + ".mjs"} {
		if _, ok := files[candidate]; ok && skillLoader(candidate) != api.LoaderNone {
			return api.OnResolveResult{Path: module + "/" + candidate, Namespace: skillsNamespace}, nil
		}
	}
	return refuse(fmt.Sprintf("skills/%s has no file %s", module, file), "")
}

// resolveRelative resolves a relative import inside a skill.
func (s *skills) resolveRelative(importer, name string) (api.OnResolveResult, error) {
	module, _, _ := strings.Cut(importer, "/")
	at := path.Join(path.Dir(importer), name)
	if !strings.HasPrefix(at, module+"/") {
		return refuse(fmt.Sprintf("cannot import %q", name), `a skill can only import its own files; import other skills from "skills/NAME"`)
	}
	return s.resolve(at)
}

func (s *skills) load(args api.OnLoadArgs) (api.OnLoadResult, error) {
	module, file, _ := strings.Cut(args.Path, "/")
	files, err := s.files(module)
	if err != nil {
		return api.OnLoadResult{}, err
	}
	contents := string(files[file])
	return api.OnLoadResult{Contents: &contents, Loader: skillLoader(file)}, nil
}

// skillLoader returns the loader for a file of a skill, LoaderNone if it cannot be imported.
func skillLoader(file string) api.Loader {
	switch path.Ext(file) {
	case ".ts":
		return api.LoaderTS
	case ".js", ".mjs":
		return api.LoaderJS
	case ".json":
		return api.LoaderJSON
	case ".txt", ".md":
		return api.LoaderText
	}
	return api.LoaderNone
}

// exports returns the names that a skill exports.
func (s *skills) exports(module string) []string {
	files, err := s.files(strings.ReplaceAll(module, "-", "_"))
	if err != nil {
		return nil
	}
	return exportNames(string(files["skill.ts"]))
}
