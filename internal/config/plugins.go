package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

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
	d.onMissing = func(_ path, _ *yaml.Node, b badReference) { g.Problem = withProblem(g.Problem, b.message) }
	defer func() { d.onMissing = nil }()
	d.Fields(at, n, []key{
		{"off", scalar(d.decoder, &g.Off, yamlstrict.Bool)},
		{"hosts", d.Texts(&g.Hosts)},
		{"secrets", d.secrets(&g.Secrets)},
		{"files", d.paths(&g.Files)},
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

// pluginProblems returns the problems of the names of plugins.
func (c *Config) pluginProblems(at path) (all []problem) {
	for _, name := range slices.Sorted(maps.Keys(c.Plugins)) {
		if !pluginName.MatchString(name) {
			all = append(all, problem{at: at.To(name), onKey: true, message: fmt.Sprintf(`%.40q cannot name a plugin: small letters, digits and "_", first a letter, at most 40`, name)})
		}
	}
	return all
}
