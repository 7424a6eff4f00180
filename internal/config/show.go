package config

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/keyschema"
	"sallyport/internal/reference"
	"sallyport/internal/secretstore"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// Document is the settings in force, as a document.
type Document struct{ root *yaml.Node }

// Text returns the document as YAML.
func (d Document) Text() (string, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(d.root); err != nil {
		return "", fmt.Errorf("write settings: %w", err)
	}
	return b.String(), nil
}

// Values returns the document as values of JSON.
func (d Document) Values() (all map[string]any, err error) {
	if err := d.root.Decode(&all); err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	return all, nil
}

// Effective returns the settings in force of a file: the keys of the file in their order, then the defaults, each
// with the comment "default". References that are not secret have their values; secrets are hidden. The errors are
// those of [Sources.Parse].
func (s Sources) Effective(file string, data []byte) (Document, error) {
	if s.Managers == nil {
		s.Managers = secretstore.New(&secretstore.Options{Getenv: s.Getenv})
	}
	c, err := s.Parse(file, data)
	if err != nil {
		return Document{}, err
	}
	root, err := yamlstrict.NewSource(file, data).Document("is empty")
	if err != nil {
		return Document{}, err
	}
	e := effective{refs: s.resolver(c.Dir)}
	for _, secrets := range c.SecretValues() {
		e.secrets = append(e.secrets, secrets...)
	}
	slices.SortFunc(e.secrets, func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
	return Document{e.value(root, KeySchema(), path{})}, nil
}

// effective makes a document of the settings in force.
type effective struct {
	refs    *reference.Resolver
	secrets []string
}

// value copies a value with its defaults, without secrets.
func (e *effective) value(n *yaml.Node, schema keyschema.Node, at path) *yaml.Node {
	switch {
	case n.Kind == yaml.MappingNode:
		return e.mapping(n, schema.Mapping(), at)
	case n.Kind == yaml.SequenceNode:
		all := &yaml.Node{Kind: yaml.SequenceNode, Tag: n.Tag}
		for _, item := range n.Content {
			all.Content = append(all.Content, e.value(item, schema.Item(), at))
		}
		return all
	case n.Tag != "!!str":
		return &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value}
	}
	return keyschema.TextNode(e.text(at, n.Value))
}

func (e *effective) mapping(n *yaml.Node, schema keyschema.Node, at path) *yaml.Node {
	all := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		all.Content = append(all.Content, keyschema.TextNode(name), e.value(n.Content[i+1], schema.Member(name), at.To(name)))
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		value := schema.Properties[name].Defaults()
		if value != nil && yamlstrict.ValueOf(n, name) == nil && fitsUpstream(at, n, name) {
			all.Content = append(all.Content, keyschema.TextNode(name), value)
		}
	}
	return all
}

// holdsSecrets reports whether the text at a path is a secret, whatever it looks like.
func holdsSecrets(at path) bool {
	last := len(at) - 1
	return last > 0 && (slices.Contains([]string{"client_secret", "password", "token"}, at[last]) ||
		slices.Contains([]string{"header", "headers", "tokens", "secrets"}, at[last-1]))
}

const hiddenText = "[secret]"

// plainReference matches a text that has references and nothing else, but for the word that names a scheme.
var plainReference = regexp.MustCompile(`^([A-Za-z]+ )?(\$\{[^}]*\})+$`)

// text returns a text with the values of its references, or as it is written where they are secret.
func (e *effective) text(at path, text string) string {
	if holdsSecrets(at) {
		if plainReference.MatchString(text) && !strings.Contains(text, ":-") {
			return text
		}
		return hiddenText
	}
	if value, bad := e.refs.Expand(text); len(bad) == 0 && e.hide(value) == value {
		return value
	}
	return e.hide(text)
}

// hide replaces the secrets in a text.
func (e *effective) hide(text string) string {
	for _, secret := range e.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, hiddenText)
		}
	}
	return text
}
