package spec

import (
	"strings"

	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// maxOnly is how many upstreams the list of a task may have.
const maxOnly = 64

func (d stepDecoder) taskKeys(s *Step) []key {
	t := &Task{}
	s.Do = t
	return []key{
		{name: "task", shape: `{"type":"string","minLength":1}`, doc: "what is to be done, in words: a model, or rules, search tools and write programs until they have the output", required: true, read: d.task(&t.Words)},
		{name: "with", shape: withShape, doc: "facts for it, by name", read: d.arguments(&t.With)},
		{name: "returns", shape: sub, doc: "the JSON Schema of the output", required: true, read: schemaDecoder(d).jsonSchema(&t.Returns)},
		{name: "only", shape: `{"type":"array","minItems":1,"maxItems":64,"items":{"type":"string","minLength":1,"maxLength":64}}`, doc: "the upstreams whose tools its programs may call; default all", read: only(d, &t.Only)},
		{name: "model", shape: `{"type":"string","minLength":1,"maxLength":64}`, doc: "a model of models in upstreams.yaml; default tasks.model", read: d.line(&t.Model, 64)},
	}
}

func (d stepDecoder) task(into *Value) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if d.message(into)(at, n); !d.Bad(at) && strings.TrimSpace(n.Value) == "" {
			d.Fail(at, n, "the task is empty; say in words what is to be done")
		}
	}
}

func only(d stepDecoder, into *[]Text) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if n.Kind == yaml.SequenceNode && (len(n.Content) == 0 || len(n.Content) > maxOnly) {
			d.Fail(at, n, "%s names from 1 to %d upstreams", label(at), maxOnly)
			return
		}
		d.Items(at, n, "a list of upstreams", func(at yamlstrict.Path, _ int, item *yaml.Node) {
			var name Text
			d.line(&name, 64)(at, item)
			*into = append(*into, name)
		})
	}
}
