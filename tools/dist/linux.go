package main

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// library is the folder of both programs in a package: /usr/bin/runsc may belong to gVisor's own package, and sallyport
// searches its own folder for runsc first.
const library = "/usr/lib/sallyport/"

// linuxPackages makes the .deb and the .rpm of a target.
func (r *release) linuxPackages(t target) error {
	for _, kind := range []struct {
		name     string
		packager nfpm.Packager
	}{{"deb", deb.Default}, {"rpm", rpm.DefaultRPM}} {
		info, err := r.describe(t, kind.name)
		if err != nil {
			return err
		}
		if r.fast {
			info.Deb.Compression, info.RPM.Compression = "none", "gzip:1"
		}
		if err := nfpm.PrepareForPackager(info, kind.name); err != nil {
			return err
		}
		path := filepath.Join(r.out, kind.packager.ConventionalFileName(info))
		if err := create(path, func(w io.Writer) error { return kind.packager.Package(info, w) }); err != nil {
			return err
		}
	}
	return nil
}

// describe returns the description of a package for Debian or for rpm.
func (r *release) describe(t target, kind string) (*nfpm.Info, error) {
	contents, err := r.contents(t)
	if err != nil {
		return nil, err
	}
	return nfpm.WithDefaults(&nfpm.Info{
		Name: "sallyport", Arch: t.arch, Platform: "linux", Version: r.version, Release: "1", Section: "net", Priority: "optional",
		Maintainer: "The Sallyport authors <sallyport@example.com>", Homepage: cmp.Or(r.home, "https://example.com/sallyport"), License: "Apache-2.0",
		Description: "one MCP server in front of many\nA gateway that finds the tools of all MCP servers by search, and runs the programs\nof models in gVisor sandboxes.",
		MTime:       r.date,
		Overridables: nfpm.Overridables{
			Depends:    map[string][]string{"deb": {"passwd"}, "rpm": {"shadow-utils"}}[kind],
			Recommends: []string{"python3", "nodejs", "npm", "ca-certificates"},
			Contents:   contents,
			Scripts:    nfpm.Scripts{PostInstall: r.packaging("postinstall.sh"), PreRemove: r.packaging("preremove.sh"), PostRemove: r.packaging("postremove.sh")},
			// Without it the name of the machine is in the package.
			RPM: nfpm.RPM{BuildHost: "localhost"},
		},
	}), nil
}

// packaging returns the path of a file of the packages.
func (r *release) packaging(name string) string {
	return filepath.Join(r.root, "tools", "dist", "packaging", name)
}

// contents returns the files of a package.
func (r *release) contents(t target) (files.Contents, error) {
	unit, err := r.unit()
	if err != nil {
		return nil, err
	}
	manuals, err := r.manuals("/usr/share/")
	if err != nil {
		return nil, err
	}
	list := files.Contents{
		{Source: library + "sallyport", Destination: "/usr/bin/sallyport", Type: files.TypeSymlink},
		{Source: r.packaging("upstreams.yaml"), Destination: "/etc/sallyport/upstreams.yaml", Type: files.TypeConfigNoReplace, FileInfo: mode(0o644)},
		{Source: unit, Destination: "/usr/lib/systemd/system/sallyport.service", FileInfo: mode(0o644)},
		{Source: filepath.Join(r.root, "LICENSE"), Destination: "/usr/share/doc/sallyport/copyright", FileInfo: mode(0o644)},
	}
	for _, f := range append(r.programs(t, library), manuals...) {
		list = append(list, &files.Content{Source: f.path, Destination: f.name, FileInfo: mode(f.mode)})
	}
	return list, nil
}

func mode(m int64) *files.ContentFileInfo { return &files.ContentFileInfo{Mode: os.FileMode(m)} } //nolint:gosec // a mode of this package

var credential = regexp.MustCompile(`(?m)^LoadCredential=.*\n`)

// unit writes the systemd unit of docs/deploy with the paths of the packages, and without a credential that a new
// installation does not have.
func (r *release) unit() (path string, err error) {
	source, err := os.ReadFile(filepath.Join(r.root, "docs", "deploy", "sallyport.service"))
	if err != nil {
		return "", err
	}
	text := strings.ReplaceAll(string(source), "/usr/local/bin/", "/usr/bin/")
	text = credential.ReplaceAllString(text, "# LoadCredential=NAME:/etc/sallyport/credentials/NAME\n")
	path = filepath.Join(r.work, "sallyport.service")
	return path, os.WriteFile(path, []byte(text), 0o644)
}
