package clients

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// listEdit is a change of a list in a client's settings: the names that leave it, and the
// one that is added.
type listEdit struct {
	path []string
	drop func(name string) bool
	add  string
	// tools: the list is a mapping from names to the tools of a server, as in the agent profiles of Zed.
	tools bool
}

// permit returns data with a server on the allow lists of the client and off its deny lists.
func (c Client) permit(data []byte, name string, p System) ([]byte, error) {
	doc, err := c.document(data)
	if err != nil {
		return nil, err
	}
	var edits []listEdit
	is := func(other string) bool { return strings.EqualFold(strings.TrimSpace(other), name) }
	switch c.Name {
	case "gemini":
		for _, path := range geminiAllowed() {
			if names := stringsOf(valueAt(doc, path...)); len(names) > 0 && !slices.Contains(names, name) {
				edits = append(edits, listEdit{path: path, add: name})
			}
		}
		edits = append(edits, listEdit{path: []string{"mcp", "excluded"}, drop: is}, listEdit{path: []string{"excludeMCPServers"}, drop: is})
	case "claude-code":
		edits = append(edits, listEdit{path: []string{"disabledMcpServers"}, drop: is}, listEdit{path: []string{"projects", p.Dir, "disabledMcpServers"}, drop: is})
	case "zed":
		for _, path := range zedLists(doc) {
			if valueAt(doc, append(path, name)...) == nil {
				edits = append(edits, listEdit{path: path, add: name, tools: true})
			}
		}
	}
	return c.editLists(data, edits)
}

// forget returns data with a server off the allow lists of the client. The last name
// of a list of Gemini stays, since an empty list allows every server.
func (c Client) forget(data []byte, name string) ([]byte, error) {
	doc, err := c.document(data)
	if err != nil {
		return nil, err
	}
	var edits []listEdit
	is := func(other string) bool { return strings.EqualFold(strings.TrimSpace(other), strings.TrimSpace(name)) }
	switch c.Name {
	case "gemini":
		for _, path := range geminiAllowed() {
			if names := stringsOf(valueAt(doc, path...)); slices.ContainsFunc(names, func(other string) bool { return !is(other) }) {
				edits = append(edits, listEdit{path: path, drop: is})
			}
		}
	case "zed":
		for _, path := range zedLists(doc) {
			edits = append(edits, listEdit{path: path, drop: func(other string) bool { return other == name }, tools: true})
		}
	}
	return c.editLists(data, edits)
}

// zedLists returns the paths of the servers in the agent profiles that show only the servers they list.
func zedLists(doc map[string]any) [][]string {
	profiles, _ := valueAt(doc, "agent", "profiles").(map[string]any)
	var all [][]string
	for _, id := range slices.Sorted(maps.Keys(profiles)) {
		fields, _ := profiles[id].(map[string]any)
		every, set := fields["enable_all_context_servers"].(bool)
		builtIn := slices.Contains([]string{"write", "ask", "minimal"}, id)
		if listed, _ := fields["context_servers"].(map[string]any); len(listed) > 0 && !every && (set || !builtIn) {
			all = append(all, []string{"agent", "profiles", id, "context_servers"})
		}
	}
	return all
}

// editLists applies edits, and checks that only they change the text.
func (c Client) editLists(data []byte, edits []listEdit) ([]byte, error) {
	for _, e := range edits {
		want, err := c.document(data)
		if err != nil {
			return nil, err
		}
		if !e.apply(want) {
			continue
		}
		if data, err = e.edit(data); err != nil {
			return nil, err
		}
		if got, err := c.document(data); err != nil || !reflect.DeepEqual(got, want) {
			return nil, ErrUnsafe
		}
	}
	return data, nil
}

// apply edits a decoded document. It reports whether that changed it.
func (e listEdit) apply(doc map[string]any) bool {
	inner, _ := valueAt(doc, e.path...).(map[string]any)
	if e.tools {
		before := len(inner)
		maps.DeleteFunc(inner, func(name string, _ any) bool { return e.drop != nil && e.drop(name) })
		if e.add != "" {
			inner[e.add] = map[string]any{"tools": map[string]any{"search_tools": true, "execute_code": true}}
		}
		return before != len(inner)
	}
	list, _ := valueAt(doc, e.path...).([]any)
	made := slices.DeleteFunc(slices.Clone(list), e.drops)
	if e.add != "" {
		made = append(made, e.add)
	}
	if len(made) == len(list) {
		return false
	}
	parent := doc
	if len(e.path) > 1 {
		parent = valueAt(doc, e.path[:len(e.path)-1]...).(map[string]any)
	}
	parent[e.path[len(e.path)-1]] = made
	return true
}

func (e listEdit) drops(item any) bool {
	name, ok := item.(string)
	return ok && e.drop != nil && e.drop(name)
}

// edit edits JSON, with its comments and its format.
func (e listEdit) edit(data []byte) ([]byte, error) {
	return withoutMark(data, func(data []byte) ([]byte, error) {
		for {
			f, at, err := findValue(data, e.path)
			if err != nil {
				return nil, err
			}
			drop := slices.IndexFunc(itemsOf(at), func(i item) bool { return e.drop != nil && e.drop(i.name()) })
			switch {
			case drop >= 0:
				data = f.removeAt(at, drop)
			case e.add == "":
				return data, nil
			case e.tools:
				return f.insert(at, e.add, func(string, string) string { return `{"tools": {"search_tools": true, "execute_code": true}}` }), nil
			default:
				return f.insertItem(at, func(string, string) string { return quote(e.add) }), nil
			}
		}
	})
}

// findValue parses JSON and returns the value at a path.
func findValue(data []byte, path []string) (*jsonFile, *hujson.Value, error) {
	f, err := parseJSON(data)
	if err != nil {
		return nil, nil, err
	}
	at := &f.root
	for _, key := range path {
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return nil, nil, ErrUnsafe
		}
		i, err := findMember(o, key)
		if err != nil || i < 0 {
			return nil, nil, ErrUnsafe
		}
		at = &o.Members[i].Value
	}
	return f, at, nil
}
