package config

import (
	"fmt"
	"maps"
	glob "path"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/reference"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// MappedFolder is a folder of the operator that programs can use as their workspace, by name.
type MappedFolder struct {
	// Path is the absolute path of the folder. In the file it may begin with "~/".
	Path string
	// Mode is what happens to changes of programs: with ro they are discarded, with rw written; default ro.
	Mode string
	// Principals are those that may use it in addition to local clients over stdio: names of http.tokens, principals as in the
	// log, or group:NAME for a group of http.identity.groups; "*" is all.
	Principals []string
	// Ignore are globs (as path.Match) of paths in the folder, or of names anywhere in it, that
	// programs can neither see nor change.
	Ignore []string
}

// The modes of a mapped folder.
const (
	// ModeRead: changes of programs are discarded.
	ModeRead = "ro"
	// ModeWrite: changes are written, except to files that tools of the host run by themselves.
	ModeWrite = "rw"
)

// anyPrincipal in MappedFolder.Principals means all principals.
const anyPrincipal = "*"

// Allows reports whether a principal with these groups may use the folder; local reports that it is a client over stdio.
func (m MappedFolder) Allows(principal string, groups []string, local bool) bool {
	if principal == "" {
		return local || slices.Contains(m.Principals, anyPrincipal)
	}
	return slices.ContainsFunc(m.Principals, func(name string) bool {
		group, isGroup := strings.CutPrefix(name, "group:")
		return name == anyPrincipal || tool.IsPrincipal(name, principal) || isGroup && slices.Contains(groups, group)
	})
}

func (d *decoder) workspaces(at path, n *yaml.Node, c *Config) {
	c.Workspaces = map[string]MappedFolder{}
	d.Each(at, n, func(at path, name, value *yaml.Node) {
		m := MappedFolder{Mode: ModeRead}
		seen := d.Fields(at, value, []key{
			{"path", homePath(d, &m.Path)},
			{"mode", d.OneOf(&m.Mode, ModeRead, ModeWrite)},
			{"principals", d.Texts(&m.Principals)},
			{"ignore", d.Texts(&m.Ignore)},
		})
		if value.Kind == yaml.MappingNode && !seen["path"] && !d.Bad(at.Unknown()) {
			d.Fail(at.To("path"), name, `workspace %.40q needs a "path"`, name.Value)
		}
		if m.Path != "" {
			refuseHome(d, at.To("path"), yamlstrict.ValueOf(value, "path"), m.Path)
		}
		c.Workspaces[name.Value] = m
	})
}

// homePath is like path, but also accepts "~" for the home folder.
func homePath(d *decoder, into *string) reader {
	return func(at path, n *yaml.Node) {
		var text string
		if d.Text(&text)(at, n); text == "" {
			return
		}
		if rest, ok := strings.CutPrefix(text, "~"); ok && (rest == "" || rest[0] == '/') {
			home, _ := d.refs.Getenv("HOME")
			if !filepath.IsAbs(home) {
				d.Fail(at, n, "there is no home folder that ~ could stand for: HOME is not set")
				return
			}
			text = filepath.Join(home, rest)
		}
		*into = reference.Absolute(d.dir, text)
	}
}

// refuseHome reports an error for the home folder and its parents.
func refuseHome(d *decoder, at path, n *yaml.Node, folder string) {
	home, _ := d.refs.Getenv("HOME")
	if !d.Bad(at) && folder != string(filepath.Separator) && filepath.IsAbs(home) && Within(home, folder) {
		d.Fail(at, n, "programs would see your whole home folder; name a folder below it")
	}
}

// Within reports whether an absolute path is folder or below it. It does not access the file system.
func Within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func (c *Config) workspaceProblems(at path) []problem {
	var all []problem
	for _, name := range slices.Sorted(maps.Keys(c.Workspaces)) {
		under, m := at.To(name), c.Workspaces[name]
		if err := workspace.Name(name); err != nil {
			all = append(all, problem{at: under, onKey: true, message: err.Error()})
		}
		all = append(all, oneOfProblem(under.To("mode"), m.Mode, []string{ModeRead, ModeWrite})...)
		all = append(all, noNUL(under.To("path"), m.Path)...)
		if m.Path == string(filepath.Separator) {
			all = append(all, problem{at: under.To("path"), message: "programs would see all of this machine; name a folder"})
		} else if !filepath.IsAbs(m.Path) {
			all = append(all, problem{at: under.To("path"), message: "the folder must be absolute"})
		} else if i := slices.IndexFunc(c.Files, func(file string) bool { return Within(file, m.Path) }); i >= 0 {
			all = append(all, problem{at: under.To("path"), message: fmt.Sprintf("the folder holds %.80q, with its secrets; move that elsewhere", filepath.Base(c.Files[i]))})
		}
		for i, pattern := range m.Ignore {
			if _, err := glob.Match(pattern, ""); err != nil || pattern == "" {
				all = append(all, problem{at: under.To("ignore").Item(i), message: fmt.Sprintf(`%.40q is not a glob: "*", "?" and [a-z] are special, as in "node_modules" or "*.log"`, pattern)})
			}
		}
	}
	return all
}
