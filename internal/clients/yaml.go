package clients

import (
	"errors"

	"gopkg.in/yaml.v3"
)

// yamlDoc reads YAML by its nodes: decoding into maps takes time without bounds
// for a file with many aliases, or with many keys of one name.
func yamlDoc(data []byte) (map[string]any, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return map[string]any{}, nil
	}
	budget := 1 << 20
	value, err := yamlValue(doc.Content[0], &budget, 0)
	if err != nil {
		return nil, err
	}
	switch root := value.(type) {
	case map[string]any:
		return root, nil
	case nil:
		return map[string]any{}, nil
	}
	return nil, errors.New("it is not a mapping")
}

// yamlValue converts a node to maps, lists and scalars; budget is the remaining number of nodes.
func yamlValue(n *yaml.Node, budget *int, depth int) (any, error) {
	if *budget--; *budget < 0 || depth > maxDepth {
		return nil, errors.New("it is too large")
	}
	switch n.Kind {
	case yaml.AliasNode:
		return yamlValue(n.Alias, budget, depth+1)
	case yaml.MappingNode:
		fields := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if _, twice := fields[key]; twice {
				return nil, errors.New("it has a key twice")
			}
			value, err := yamlValue(n.Content[i+1], budget, depth+1)
			if err != nil {
				return nil, err
			}
			fields[key] = value
		}
		return fields, nil
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			value, err := yamlValue(item, budget, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return nil, err
	}
	return value, nil
}
