package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// A patch changes a file of a library for a release, so that the linker can drop what the program never uses. Each text
// must occur in the file once, so a new version of the library that has another one stops the build.
type patch struct {
	module  string // "" is the standard library
	file    string
	changes [][2]string
}

// patches are the changes of libraries. Nothing that the program does is changed:
//
//   - A template can call a method by its name, so the linker keeps every exported method of every type. Templates of
//     this project call functions only, which a test checks.
//   - bleve decodes geographic shapes with a JSON library that does the same; there are no such shapes in the index.
//   - bleve registers the formats of its segments on disk, of seven versions. The index has one of its own, in memory.
//   - The storage engine has pages about the process, at a port that is never open.
//   - The library that checks telephone numbers contains the names of regions in all languages, which are not used.
//   - A library of OpenID Connect can store values in cookies, which nothing does.
func patches() []patch {
	return []patch{
		{"", "text/template/exec.go", [][2]string{{"\tif method := ptr.MethodByName(fieldName); method.IsValid() {\n" +
			"\t\treturn s.evalCall(dot, method, false, node, fieldName, args, final)\n\t}\n", ""}}},
		{"github.com/blevesearch/geo", "geojson/geojson_shapes_util.go", [][2]string{
			{`jsoniterator "github.com/json-iterator/go"`, `"encoding/json"`},
			{"var jsoniter = jsoniterator.ConfigCompatibleWithStandardLibrary\n", "var jsoniter standardJSON\n\ntype standardJSON struct{}\n\n" +
				"func (standardJSON) Marshal(v any) ([]byte, error) { return json.Marshal(v) }\n\nfunc (standardJSON) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }\n"},
		}},
		{"github.com/blevesearch/bleve/v2", "index/scorch/segment_plugin.go", segmentFormats()},
		{"github.com/nats-io/nats-server/v2", "server/server.go", [][2]string{{"\t_ \"net/http/pprof\"\n", ""}}},
		{"github.com/nyaruka/phonenumbers", "geocoding.go", [][2]string{{"\t\"golang.org/x/text/language/display\"\n", ""}, {"return display.Regions(langT).Name(reg), nil", "_ = langT\n\treturn reg.String(), nil"}}},
		{"github.com/gorilla/securecookie", "securecookie.go", [][2]string{{"\t\"encoding/gob\"\n", ""}, {"gob.NewEncoder(", "json.NewEncoder("}, {"gob.NewDecoder(", "json.NewDecoder("}}},
	}
}

// segmentFormats removes the imports and the registrations of bleve's formats.
func segmentFormats() (changes [][2]string) {
	for version := 11; version <= 17; version++ {
		changes = append(changes, [2]string{fmt.Sprintf("\tzapv%d \"github.com/blevesearch/zapx/v%[1]d\"\n", version), ""},
			[2]string{fmt.Sprintf("\tRegisterSegmentPlugin(&zapv%d.ZapPlugin{}, %v)\n", version, version == 17), ""})
	}
	return changes
}

// apply returns the text with the changes.
func (p patch) apply(text string) (string, error) {
	for _, c := range p.changes {
		if strings.Count(text, c[0]) != 1 {
			return "", fmt.Errorf("patch %s of %q: this version does not have %q once: change patches in tools/dist/slim.go", p.file, p.module, c[0])
		}
		text = strings.Replace(text, c[0], c[1], 1)
	}
	return text, nil
}

// slim writes the patched libraries to the work folder, and returns the flags of go build that use them.
func (r *release) slim(ctx context.Context) ([]string, error) {
	replaced := map[string]string{}
	var replaces strings.Builder
	for i, p := range patches() {
		dir := filepath.Join(r.work, "slim", fmt.Sprint(i))
		source, err := p.copyModule(ctx, r.root, dir)
		if err != nil {
			return nil, err
		}
		if p.module == "" {
			replaced[source] = filepath.Join(dir, filepath.Base(p.file))
			continue
		}
		path, err := filepath.Rel(r.root, dir)
		if err != nil {
			return nil, err
		}
		path = "./" + filepath.ToSlash(path)
		fmt.Fprintf(&replaces, "\nreplace %s => %s\n", p.module, path)
		_, version, _ := strings.Cut(strings.TrimSuffix(source, "/"+p.file), "@") // of its folder in the module cache
		r.replaced = append(r.replaced, [3]string{path, p.module, version})
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err == nil {
		err = os.WriteFile(filepath.Join(r.work, "overlay.json"), overlay, 0o644)
	}
	if err == nil {
		err = writeModFile(r.root, r.work, replaces.String())
	}
	return []string{"-tags=grpcnotrace", "-overlay=" + filepath.Join(r.work, "overlay.json"), "-modfile=" + filepath.Join(r.work, "slim.mod")}, err
}

// copyModule writes a copy of a module with the patch to a folder, of the standard library only the file. It returns the path
// of the original file.
func (p patch) copyModule(ctx context.Context, root, dir string) (string, error) {
	words := []string{"env", "GOROOT"}
	if p.module != "" {
		words = []string{"list", "-m", "-f", "{{.Dir}}", p.module}
	}
	cmd := exec.CommandContext(ctx, "go", words...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(words, " "), err)
	}
	from, to := strings.TrimSpace(string(out)), filepath.Join(dir, p.file)
	if p.module == "" {
		from, to = filepath.Join(from, "src"), filepath.Join(dir, filepath.Base(p.file))
		err = os.MkdirAll(dir, 0o755)
	} else {
		err = os.CopyFS(dir, os.DirFS(from))
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(from, p.file), p.write(filepath.Join(from, p.file), to)
}

// write writes the patched file.
func (p patch) write(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	text, err := p.apply(string(data))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil { // a copy of a file of the module cache is read-only
		return err
	}
	return os.WriteFile(to, []byte(text), 0o644)
}

// original returns a list of modules with the patched ones under their own names: in the program they are named by the
// folders of the patched copies.
func original(list string, replaced [][3]string) string {
	for _, module := range replaced {
		path, name, version := module[0], module[1], module[2]
		list = strings.ReplaceAll(list, path+"@(devel)", name+"@"+version)
		list = regexp.MustCompile(`"name": "`+regexp.QuoteMeta(path)+`",(\s+)"version": "\(devel\)"`).ReplaceAllString(list, `"name": "`+name+`",$1"version": "`+version+`"`)
	}
	return list
}

// writeModFile writes the go.mod that replaces the patched modules.
func writeModFile(root, work, replaces string) error {
	for _, name := range []string{"mod", "sum"} {
		data, err := os.ReadFile(filepath.Join(root, "go."+name))
		if err != nil {
			return err
		}
		if name == "mod" {
			data = append(data, replaces...)
		}
		if err := os.WriteFile(filepath.Join(work, "slim."+name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
