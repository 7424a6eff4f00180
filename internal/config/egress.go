package config

import (
	"slices"

	"gopkg.in/yaml.v3"

	"sallyport/internal/policy"
	"sallyport/internal/webaccess"
	"sallyport/internal/yamlstrict"
)

// egress reads the key egress. What comes from the web is untrusted, and requests can carry data outside.
func (d hostDecoder) egress(at path, n *yaml.Node, u *Upstream) {
	u.Egress = &webaccess.Access{}
	d.Fields(at, n, []key{
		{"hosts", func(at path, n *yaml.Node) { u.Egress.Hosts = yamlstrict.List(d.Decoder, at, n, d.webHost) }},
		{"private_hosts", func(at path, n *yaml.Node) { u.Egress.PrivateHosts = yamlstrict.List(d.Decoder, at, n, d.webHost) }},
		{"budget", scalar(d.decoder, &u.Egress.Budget, yamlstrict.Count)},
	})
	u.Labels = append(u.Labels, policy.External, policy.Untrusted)
}

func (d hostDecoder) webHost(at path, n *yaml.Node, h *webaccess.Host) {
	h.Methods = []string{webaccess.Get}
	if n.Kind == yaml.ScalarNode {
		d.Text(&h.Name)(at, n)
		return
	}
	d.Fields(at, n, []key{{"name", d.Text(&h.Name)}, {"methods", d.Texts(&h.Methods)}, {"header", d.secrets(&h.Header)}})
}

// addEgressBudgets adds the budgets of egress to those of the file.
func (c *Config) addEgressBudgets() {
	for _, u := range c.Upstreams {
		if u.Egress != nil && u.Egress.Budget > 0 {
			c.Budgets = append(c.Budgets, Budget{Name: "egress of " + u.Name, Tools: []string{u.Name + ".*"}, Calls: u.Egress.Budget, Per: PerDay})
		}
	}
}

// egressProblems returns the problems of the key egress.
func (u Upstream) egressProblems(at path) (all []problem) {
	names := u.Egress.HostNames()
	if len(names) == 0 {
		return []problem{{at: at, onKey: true, needs: []path{at.To("hosts"), at.To("private_hosts")}, message: `"egress" needs the "hosts" that programs may send requests to`}}
	}
	check := func(under path, hosts []webaccess.Host) {
		for i, h := range hosts {
			item := under.Item(i)
			all = append(all, IsolationHost{Name: h.Name, Header: h.Header}.problems(item, names)...)
			if len(h.Header) > 0 && h.Scheme() == "http" {
				all = append(all, problem{at: item.To("name"), message: "a host with a header is reached over https only, and port 80 is for http"})
			}
			if n, message := h.MethodProblem(); message != "" {
				all = append(all, problem{at: item.To("methods").Item(n), message: message})
			}
		}
	}
	check(at.To("hosts"), u.Egress.Hosts)
	check(at.To("private_hosts"), u.Egress.PrivateHosts)
	return slices.Concat(all, between(at.To("budget"), u.Egress.Budget, 0, 1_000_000_000))
}
