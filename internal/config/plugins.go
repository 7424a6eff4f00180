package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"sallyport/internal/reference"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// PluginGrants are what a plugin may use of what its manifest asks for.
type PluginGrants struct {
	// Off turns the plugin off, with everything that it guards.
	Off bool
	// Hosts are the hosts that it may reach over https, as api.example.com or api.example.com:8443; default none.
	Hosts []string
	// Secrets are values for the code of the plugin, by name; default none.
	Secrets Secrets
	// Files are files or folders of this machine that it may read, by the name that they get below /files; default none.
	Files map[string]string
	// Labels are labels of all its tools and steps, as those of an upstream; default none.
	Labels []string
	// ToolLabels are further labels of tools and steps, by globs (as path.Match) over their names.
	ToolLabels map[string][]string
	// Problem describes references without a value, "" if all have one. Unless it is "", the plugin does not run.
	Problem string
}

// pluginName matches the names of plugins.
var pluginName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// pluginDecoder reads what plugins may do.
type pluginDecoder struct{ *decoder }

func (d pluginDecoder) plugins(at path, n *yaml.Node, c *Config) {
	c.Plugins = map[string]PluginGrants{}
	d.Each(at, n, func(at path, key, value *yaml.Node) {
		g := PluginGrants{}
		d.plugin(at, value, &g)
		c.Plugins[key.Value] = g
	})
}

func (d pluginDecoder) plugin(at path, n *yaml.Node, g *PluginGrants) {
	d.onMissing = func(_ path, _ *yaml.Node, b reference.Fault) { g.Problem = withProblem(g.Problem, b.Problem()) }
	defer func() { d.onMissing = nil }()
	d.Fields(at, n, []key{
		{"off", scalar(d.decoder, &g.Off, yamlstrict.Bool)},
		{"hosts", d.Texts(&g.Hosts)},
		{"secrets", d.secrets(&g.Secrets)},
		{"files", d.paths(&g.Files)},
		{"labels", d.Texts(&g.Labels)},
		{"tool_labels", func(at path, n *yaml.Node) { policyDecoder(d).toolLabels(at, n, &g.ToolLabels) }},
	})
}

// paths reads paths by name, which start at the file's directory.
func (d pluginDecoder) paths(into *map[string]string) reader {
	return func(at path, n *yaml.Node) {
		*into = map[string]string{}
		d.Each(at, n, func(under path, key, value *yaml.Node) {
			var place string
			d.path(&place)(under, value)
			(*into)[key.Value] = place
		})
	}
}

// Labeled returns the labels of a plugin in the form of an upstream.
func (g PluginGrants) Labeled(name string) Upstream {
	return Upstream{Name: name, ID: name, Labels: g.Labels, ToolLabels: g.ToolLabels}
}

// hasPlugin reports whether a name is that of a plugin: of one in the settings, or in the folder next to them.
func (c *Config) hasPlugin(name string) bool {
	if _, ok := c.Plugins[name]; ok || c.Dir == "" || !pluginName.MatchString(name) {
		return ok
	}
	_, err := os.Stat(filepath.Join(c.Dir, "plugins", name, "plugin.yaml"))
	return err == nil
}

// pluginProblems returns the problems of the names and the labels of plugins.
func (c *Config) pluginProblems(at path) (all []problem) {
	for _, name := range slices.Sorted(maps.Keys(c.Plugins)) {
		if !pluginName.MatchString(name) {
			all = append(all, problem{at: at.To(name), onKey: true, message: fmt.Sprintf(`%.40q cannot name a plugin: small letters, digits and "_", first a letter, at most 40`, name)})
		}
		all = append(all, c.Plugins[name].Labeled(name).labelProblems(at.To(name))...)
	}
	return all
}
