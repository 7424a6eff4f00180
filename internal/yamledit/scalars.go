package yamledit

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// Scalar is a value of a file that is one text.
type Scalar struct {
	// Path are the keys to it. An item of a list has those of the list.
	Path  []string
	Value string
	// Offset is where it begins.
	Offset int
	// List are the texts of the list that it is an item of, nil for a value of a key.
	List []string
}

// Scalars returns the scalars of a file, without the keys, in its order.
func Scalars(data []byte) ([]Scalar, error) {
	f, err := parse(data)
	if err != nil || f.root == nil {
		return nil, err
	}
	return f.scalars(f.root, nil, nil), nil
}

func (f *file) scalars(n *yaml.Node, path, list []string) (all []Scalar) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			all = append(all, f.scalars(n.Content[i+1], append(slices.Clone(path), n.Content[i].Value), nil)...)
		}
	case yaml.SequenceNode:
		texts := []string{}
		for _, item := range n.Content {
			texts = append(texts, item.Value)
		}
		for _, item := range n.Content {
			all = append(all, f.scalars(item, path, texts)...)
		}
	case yaml.ScalarNode:
		return []Scalar{{path, n.Value, f.offset(n), list}}
	}
	return all
}
