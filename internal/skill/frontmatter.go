package skill

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Front is the front matter of a SKILL.md. Foreign keys are preserved.
type Front struct {
	// Name is the folder's name, whatever the file says.
	Name        string
	Description string
	// Language is Python or TypeScript; if it is missing in a file, it is that of the code next to it.
	Language string
	// Version counts from 1; a file without one is 1.
	Version int
	// Parameters are those of the main function, as written: "days: int = 7".
	Parameters []string
	// Functions are the signatures of what the code exports, the main one first.
	Functions []string
	// Tools are the digests of the definitions that the code was written against, by "upstream.tool".
	Tools map[string]string
	// Author is the principal that asked to share the skill, "" for one that is not shared.
	Author string
	// Groups are the groups of principals that may see and use the skill; nil for all principals.
	Groups []string

	rest []*yaml.Node // foreign keys with their values
	raw  []byte       // the file that it was read from
}

// maxFront is the longest SKILL.md that is read, in bytes.
const maxFront = 64 << 10

// maxItems bounds lists and maps in a front matter.
const maxItems = 200

// Errors of a SKILL.md.
var (
	errNoFront       = errors.New(`SKILL.md must begin with a line "---", and its front matter end with one`)
	errAlias         = errors.New("SKILL.md: anchors and aliases are not allowed")
	errNotUTF8       = errors.New("SKILL.md is not UTF-8")
	errTooLong       = fmt.Errorf("SKILL.md has more than %d KiB", maxFront>>10)
	errNotAMap       = errors.New("SKILL.md: the front matter must be keys with values")
	errDuplicateKey  = errors.New("SKILL.md: a key stands twice in the front matter")
	errTooDeep       = errors.New("SKILL.md: the front matter is nested too deep")
	errTooMany       = fmt.Errorf("SKILL.md: a list has more than %d entries", maxItems)
	errNoDescription = errors.New("SKILL.md: a description is missing")
)

// Parse parses a SKILL.md. It is strict about our own keys and accepts foreign ones.
func Parse(data []byte) (Front, string, error) {
	switch {
	case len(data) > maxFront:
		return Front{}, "", errTooLong
	case !utf8.Valid(data):
		return Front{}, "", errNotUTF8
	}
	text := strings.TrimPrefix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\uFEFF")
	head, found := strings.CutPrefix(text, "---\n")
	front, body, ended := strings.Cut(head, "\n---")
	if !found || !ended || body != "" && body[0] != '\n' {
		return Front{}, "", errNoFront
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(front), &doc); err != nil {
		return Front{}, "", fmt.Errorf("SKILL.md: %w", err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return Front{}, "", errNotAMap
	}
	if err := checkSimple(doc.Content[0], 0); err != nil {
		return Front{}, "", err
	}
	f := Front{raw: data}
	if err := f.read(doc.Content[0].Content); err != nil {
		return Front{}, "", err
	}
	return f, strings.TrimLeft(body, "\n"), nil
}

// checkSimple rejects YAML features that expand a small text to a large value.
func checkSimple(n *yaml.Node, depth int) error {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return errAlias
	case depth > 8:
		return errTooDeep
	case len(n.Content) > 2*maxItems:
		return errTooMany
	}
	for _, child := range n.Content {
		if err := checkSimple(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (f *Front) read(pairs []*yaml.Node) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, value := pairs[i].Value, pairs[i+1]
		if pairs[i].Kind != yaml.ScalarNode || seen[key] {
			return errDuplicateKey
		}
		seen[key] = true
		if err := f.set(key, pairs[i], value); err != nil {
			return err
		}
	}
	if strings.TrimSpace(f.Description) == "" {
		return errNoDescription
	}
	return nil
}

func (f *Front) set(key string, name, value *yaml.Node) (err error) {
	switch key {
	case "name":
		f.Name, err = scalar(key, value)
	case "description":
		f.Description, err = scalar(key, value)
	case "language":
		err = f.setLanguage(value)
	case "author":
		f.Author, _ = scalar(key, value) // in foreign skills it may have any type
	case "groups":
		f.Groups, err = groups(value)
	case "version":
		f.setVersion(value)
	case "parameters":
		f.Parameters = lines(value)
	case "functions":
		f.Functions = lines(value)
	case "tools":
		tools := map[string]string{}
		if value.Decode(&tools) == nil { // in foreign skills it may be a list
			f.Tools = tools
		}
	default:
		f.rest = append(f.rest, name, value)
	}
	return err
}

func (f *Front) setLanguage(value *yaml.Node) (err error) {
	f.Language, err = scalar("language", value)
	if err == nil && f.Language != Python && f.Language != TypeScript {
		err = fmt.Errorf("SKILL.md, line %d: language must be %s or %s", value.Line+1, Python, TypeScript)
	}
	return err
}

// setVersion reads a number. In a foreign skill it may be "1.2", which the number of the next version replaces.
func (f *Front) setVersion(value *yaml.Node) {
	if n, err := strconv.Atoi(value.Value); value.Kind == yaml.ScalarNode && err == nil && n > 0 && n < 1e9 {
		f.Version = n
	}
}

func scalar(key string, n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("SKILL.md, line %d: %s must be a text", n.Line+1, key)
	}
	return n.Value, nil
}

// lines reads a list of texts, or a mapping of them: an unquoted "days: int = 7" is one.
func lines(n *yaml.Node) (list []string) {
	entry := func(name, value *yaml.Node) string { return strings.TrimSuffix(name.Value+": "+value.Value, ": ") }
	for i, item := range n.Content {
		switch {
		case n.Kind == yaml.MappingNode && i%2 == 0:
			list = append(list, entry(item, n.Content[i+1]))
		case n.Kind == yaml.MappingNode:
		case item.Kind == yaml.MappingNode && len(item.Content) == 2:
			list = append(list, entry(item.Content[0], item.Content[1]))
		case item.Kind == yaml.ScalarNode:
			list = append(list, item.Value)
		}
	}
	return list[:min(len(list), maxItems)]
}

// Format writes a SKILL.md that Parse reads.
func (s Skill) Format() []byte {
	text := func(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value} }
	list := func(values []string) *yaml.Node {
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, value := range values {
			n.Content = append(n.Content, text(value))
		}
		return n
	}
	m := &yaml.Node{Kind: yaml.MappingNode}
	add := func(key string, value *yaml.Node) { m.Content = append(m.Content, text(key), value) }
	add("name", text(s.Name))
	add("description", text(s.Description))
	add("language", text(s.Language))
	add("version", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(max(s.Version, 1))})
	if s.Author != "" {
		add("author", text(s.Author))
	}
	if len(s.Groups) > 0 {
		add("groups", list(s.Groups))
	}
	if len(s.Parameters) > 0 {
		add("parameters", list(s.Parameters))
	}
	if len(s.Functions) > 0 {
		add("functions", list(s.Functions))
	}
	if len(s.Tools) > 0 {
		tools := &yaml.Node{Kind: yaml.MappingNode}
		for _, id := range slices.Sorted(maps.Keys(s.Tools)) {
			tools.Content = append(tools.Content, text(id), text(s.Tools[id]))
		}
		add("tools", tools)
	}
	m.Content = append(m.Content, s.rest...)
	var b bytes.Buffer
	b.WriteString("---\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	_ = enc.Encode(m) // of texts only, and into memory
	b.WriteString("---\n\n" + strings.TrimSpace(s.Body) + "\n")
	return b.Bytes()
}

// AdoptForeignKeys copies the foreign keys of an earlier version.
func (f *Front) AdoptForeignKeys(earlier Front) { f.rest = earlier.rest }
