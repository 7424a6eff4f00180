package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"
)

// manifest is the package.json of a package.
type manifest struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Description  string            `json:"description"`
	License      string            `json:"license"`
	Homepage     string            `json:"homepage"`
	OS           []string          `json:"os,omitempty"`
	CPU          []string          `json:"cpu,omitempty"`
	Bin          map[string]string `json:"bin,omitempty"`
	Engines      map[string]string `json:"engines,omitempty"`
	Optional     map[string]string `json:"optionalDependencies,omitempty"`
	PreferUnplug bool              `json:"preferUnplugged,omitempty"`
}

// npmPlatform returns the system and the architecture of a target in the names of Node.js.
func npmPlatform(t target) (system, arch string) {
	system, arch = t.system, t.arch
	if system == "windows" {
		system = "win32"
	}
	if arch == "amd64" {
		arch = "x64"
	}
	return system, arch
}

func npmName(t target) string {
	system, arch := npmPlatform(t)
	return "@sallyport/" + system + "-" + arch
}

func (r *release) manifest(name, description string) manifest {
	return manifest{Name: name, Version: r.version, Description: description, License: "Apache-2.0", Homepage: cmp.Or(r.home, "https://example.com/sallyport")}
}

// npmBinary makes the package with the programs of one target.
func (r *release) npmBinary(t target) error {
	m := r.manifest(npmName(t), "the program of sallyport for "+t.String())
	system, arch := npmPlatform(t)
	m.OS, m.CPU, m.PreferUnplug = []string{system}, []string{arch}, true
	return r.npmPackage(m, append(r.programs(t, "package/bin/"), r.linuxArchive(t, "package/share/sallyport/")...))
}

// npmMain makes the package that people install. It depends on those of all targets, of which npm takes one.
func (r *release) npmMain(targets []target) error {
	m := r.manifest("sallyport", "one MCP server in front of many")
	m.Bin, m.Engines, m.Optional = map[string]string{"sallyport": "bin/sallyport.js"}, map[string]string{"node": ">=20"}, map[string]string{}
	for _, t := range targets {
		m.Optional[npmName(t)] = r.version
	}
	start, err := r.starter(targets)
	if err != nil {
		return err
	}
	return r.npmPackage(m, []file{
		{name: "package/bin/sallyport.js", mode: 0o755, data: start},
		{name: "package/README.md", mode: 0o644, path: r.packaging("npm.md")},
	})
}

// starter returns the script that starts the program, with the names of the supported targets.
func (r *release) starter(targets []target) ([]byte, error) {
	var names []string
	for _, t := range targets {
		names = append(names, strings.TrimPrefix(npmName(t), "@sallyport/"))
	}
	script, err := file{path: r.packaging("sallyport.js")}.contents()
	return bytes.ReplaceAll(script, []byte("TARGETS"), []byte(strings.Join(names, ", "))), err
}

func (r *release) npmPackage(m manifest, files []file) error {
	data, err := indented(m)
	if err != nil {
		return err
	}
	files = append([]file{{name: "package/package.json", mode: 0o644, data: data}}, files...)
	files = append(files, file{name: "package/LICENSE", mode: 0o644, path: filepath.Join(r.root, "LICENSE")})
	name := strings.ReplaceAll(strings.TrimPrefix(m.Name, "@"), "/", "-")
	return r.writeTarGz(filepath.Join(r.out, "npm-"+name+"-"+r.version+".tgz"), files)
}

// indented returns a value as JSON that people read.
func indented(value any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(value)
	return text.Bytes(), err
}
