package config

import (
	"fmt"
	"path/filepath"

	"sallyport/internal/reference"
	"sallyport/internal/secretstore"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// ManagedSecret is a reference to a secret manager in the file.
type ManagedSecret struct {
	// Name is what is between "${" and "}".
	Name string
	// Line and Column are its position.
	Line, Column int
	// Problem says why it has no value, "" if it has one; Fix says what to do.
	Problem, Fix string
}

// managerDecoder decodes the key secret_managers.
type managerDecoder struct{ *decoder }

const managersKey = "secret_managers"

// managersFirst returns the root of a file with the settings of secret managers before what refers to them. Without any,
// those of the environment apply.
func managersFirst(d *decoder, root *yaml.Node) *yaml.Node {
	if root.Kind != yaml.MappingNode || yamlstrict.ValueOf(root, managersKey) == nil {
		d.refs.Managers.Use(secretstore.DefaultManagers())
		return root
	}
	first, rest := *root, []*yaml.Node(nil)
	first.Content = nil
	for i := 0; i+1 < len(root.Content); i += 2 {
		if pair := root.Content[i : i+2]; pair[0].Value == managersKey {
			first.Content = append(first.Content, pair...)
		} else {
			rest = append(rest, pair...)
		}
	}
	first.Content = append(first.Content, rest...)
	return &first
}

func (d managerDecoder) managers(at path, n *yaml.Node, m *secretstore.Managers) {
	d.onMissing = func(_ path, _ *yaml.Node, b reference.Fault) { m.Problem = withProblem(m.Problem, b.Problem()) }
	d.refs.Local = true
	defer func() { d.onMissing, d.refs.Local = nil, false }()
	d.Fields(at, n, []key{
		{"refresh", scalar(d.decoder, &m.Refresh, yamlstrict.Duration)},
		{"keep", scalar(d.decoder, &m.Keep, yamlstrict.Duration)},
		{"vault", func(at path, n *yaml.Node) { d.vault(at, n, &m.Vault) }},
		{"onepassword", func(at path, n *yaml.Node) {
			o := &m.OnePassword
			d.Fields(at, n, []key{{"url", d.Text(&o.URL)}, {"token", d.Text((*string)(&o.Token))}, {"ca", d.path(&o.CA)}, {"insecure", scalar(d.decoder, &o.Insecure, yamlstrict.Bool)}})
		}},
		{"aws", func(at path, n *yaml.Node) {
			a := &m.AWS
			d.Fields(at, n, []key{{"region", d.Text(&a.Region)}, {"profile", d.Text(&a.Profile)}, {"endpoint", d.Text(&a.Endpoint)}, {"ca", d.path(&a.CA)}, {"instance", scalar(d.decoder, &a.Instance, yamlstrict.Bool)}})
		}},
		{"gcp", func(at path, n *yaml.Node) {
			g := &m.GCP
			d.Fields(at, n, []key{{"project", d.Text(&g.Project)}, {"credentials", d.path(&g.Credentials)}, {"endpoint", d.Text(&g.Endpoint)}, {"ca", d.path(&g.CA)}, {"instance", scalar(d.decoder, &g.Instance, yamlstrict.Bool)}})
		}},
	})
	d.refs.Managers.Use(*m)
}

func (d managerDecoder) vault(at path, n *yaml.Node, v *secretstore.Vault) {
	d.Fields(at, n, []key{
		{"address", d.Text(&v.Address)},
		{"namespace", d.Text(&v.Namespace)},
		{"ca", d.path(&v.CA)},
		{"insecure", scalar(d.decoder, &v.Insecure, yamlstrict.Bool)},
		{"token", d.Text((*string)(&v.Token))},
		{"token_file", d.path(&v.TokenFile)},
		{"approle", func(at path, n *yaml.Node) {
			a := &v.AppRole
			d.Fields(at, n, []key{{"role_id", d.Text((*string)(&a.RoleID))}, {"secret_id", d.Text((*string)(&a.SecretID))}, {"mount", d.Text(&a.Mount)}})
		}},
		{"kubernetes", func(at path, n *yaml.Node) {
			k := &v.Kubernetes
			d.Fields(at, n, []key{{"role", d.Text(&k.Role)}, {"mount", d.Text(&k.Mount)}, {"token_file", d.path(&k.TokenFile)}})
		}},
	})
}

func managerProblems(at path, m secretstore.Managers) (all []problem) {
	for _, f := range m.Faults() {
		under := at
		for _, name := range f.Key {
			under = under.To(name)
		}
		all = append(all, problem{at: under, fallback: at, message: f.Message})
	}
	return all
}

// maxManaged bounds the references whose positions are found, which takes time.
const maxManaged = 200

// noteManaged remembers the references to secret managers in the text of n.
func noteManaged(d *decoder, n *yaml.Node) {
	for _, use := range d.refs.TakeManaged() {
		if len(d.managed) == maxManaged {
			return
		}
		one := ManagedSecret{Name: use.Name}
		one.Line, one.Column = positionOf(d, n, reference.Fault{Offset: use.Offset, Missing: use.Name})
		if use.Fault != nil {
			one.Problem, one.Fix = use.Fault.Message, use.Fault.Fix
		}
		d.managed = append(d.managed, one)
	}
}

// where returns the position of a reference as the beginning of a message.
func where(d *decoder, n *yaml.Node, b reference.Fault) string {
	if len(d.managed) == maxManaged {
		return ""
	}
	line, column := positionOf(d, n, b)
	return fmt.Sprintf("%s:%d:%d: ", filepath.Base(d.Source.Path), line, column)
}
