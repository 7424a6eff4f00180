// Command editor bundles the editor of the dashboard's playground: the scripts of this folder with CodeMirror, as
// package-lock.json pins it, into one file that is committed.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// output is the bundle, from the folder of this program.
const output = "../../gateway/dashboard/static/editor.min.js"

func main() {
	log.SetFlags(0)
	dir := "tools/editor"
	bundle, err := build(dir, filepath.Join(dir, "node_modules"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, output), bundle, 0o644)
	}
	if err != nil {
		log.Fatal("editor: ", err)
	}
}

// build returns the bundle of the scripts in a folder, with the packages in modules.
func build(dir, modules string) ([]byte, error) {
	root, err := filepath.Abs(dir)
	if err == nil {
		modules, err = filepath.Abs(modules)
	}
	if err != nil {
		return nil, err
	}
	made := api.Build(api.BuildOptions{
		EntryPoints: []string{"editor.js"}, AbsWorkingDir: root, NodePaths: []string{modules}, Bundle: true, Format: api.FormatIIFE, Target: api.ES2022, Charset: api.CharsetUTF8,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsNone, Metafile: true,
	})
	var wrong []error
	for _, m := range slices.Concat(made.Errors, made.Warnings) {
		wrong = append(wrong, errors.New(m.Text))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	header, err := licences(modules, made.Metafile)
	return append([]byte(header), made.OutputFiles[0].Contents...), err
}

// licences returns the comment at the top: the packages of a bundle with their versions. All have one licence; another is an error.
func licences(modules, metafile string) (string, error) {
	var meta struct {
		Inputs map[string]struct{}
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return "", err
	}
	all := map[string]bool{}
	for path := range meta.Inputs {
		name := packageOf(path)
		if name == "" {
			continue
		}
		about, err := readPackage(filepath.Join(modules, name))
		if err == nil && about.License != "MIT" {
			err = fmt.Errorf("the licence of %s is %q, and not MIT", name, about.License)
		}
		if err != nil {
			return "", err
		}
		all[name+" "+about.Version] = true
	}
	names := strings.Join(slices.Sorted(maps.Keys(all)), ", ")
	return "/* Made by make editor from tools/editor, with " + names + ". MIT License,\n" +
		"Copyright (C) 2018-2021 by Marijn Haverbeke <marijn@haverbeke.berlin> and others; see NOTICE. */\n", nil
}

// packageOf returns the npm package of a file, "" for one of this folder.
func packageOf(path string) string {
	_, rest, found := strings.Cut(path, "node_modules/")
	if !found {
		return ""
	}
	parts := strings.Split(rest, "/")
	if strings.HasPrefix(rest, "@") {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// manifest is what a package says of itself.
type manifest struct{ Version, License string }

func readPackage(dir string) (about manifest, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err == nil {
		err = json.Unmarshal(data, &about)
	}
	return about, err
}
