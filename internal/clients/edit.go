package clients

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"sallyport/internal/yamledit"
)

// ErrUnsafe reports that the file cannot be edited without changing something else.
var ErrUnsafe = errors.New("cannot be edited without a change to something else; edit it by hand")

// Install returns data with sallyport's entry added or updated, and on the lists of
// servers that the client starts. The rest is unchanged. An entry with that name that
// starts something else is an error.
func (c Client) Install(data []byte, self Self, p System) ([]byte, error) {
	made, err := c.installEntry(data, self, p)
	if err != nil {
		return nil, err
	}
	return c.permit(made, OurName, p)
}

func (c Client) installEntry(data []byte, self Self, p System) ([]byte, error) {
	doc, err := c.document(data)
	if err != nil {
		return nil, err
	}
	path := []string{c.key, OurName}
	if servers, ok := doc[c.key].(map[string]any); ok {
		if old, there := servers[OurName]; there {
			if equalEntry(old, c.entry(self)) {
				return data, nil
			}
			fields, _ := old.(map[string]any)
			r := &serverParser{Reader: NewReader(p), client: c, raw: rawServer{OurName, path, fields}}
			if !isReplaceable(r.server()) {
				return nil, fmt.Errorf("has a server %q that is not ours; rename it first", OurName)
			}
			if data, err = c.remove(data, path); err != nil {
				return nil, err
			}
		}
	} else if doc[c.key] != nil {
		return nil, fmt.Errorf("has something else than servers under %q", c.key)
	}
	made, err := c.add(data, self)
	if err != nil {
		return nil, err
	}
	return made, c.verify(data, made, path, c.entry(self))
}

// isReplaceable reports whether a server with our name starts sallyport, or connects to one over HTTP.
func isReplaceable(s Server) bool {
	return s.Self || s.entry.URL != "" || slices.Contains(s.entry.Args, remoteProxy)
}

// Remove returns data without the servers, also on the lists of servers that the client
// starts, and otherwise unchanged.
func (c Client) Remove(data []byte, servers ...Server) ([]byte, error) {
	for _, s := range servers {
		made, err := c.remove(data, s.at)
		if err != nil {
			return nil, err
		}
		if err := c.verify(data, made, s.at, nil); err != nil {
			return nil, err
		}
		if data, err = c.forget(made, s.Label); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// BlockedBy returns the setting by which the client would not start sallyport from a
// file with the content made, "" if it starts it. It may be in another file.
func (c Client) BlockedBy(p System, file string, made []byte, self Self) string {
	doc, err := c.document(made)
	if err != nil {
		return ""
	}
	l := c.listsOf(p, file, doc)
	if c.Name == "claude-code" {
		l.allowed = nil // it asks for the approval of a server that is in none
	}
	return l.blocks(rawServer{name: OurName, fields: c.entry(self)})
}

func (c Client) add(data []byte, self Self) ([]byte, error) {
	switch c.format {
	case tomlFormat:
		return addTable(data, c.key, c.fields(self)), nil
	case yamlFormat:
		return yamledit.Add(data, c.key, OurName, c.fields(self))
	}
	return addMember(data, c.key, OurName, c.fields(self))
}

func (c Client) remove(data []byte, at []string) ([]byte, error) {
	switch c.format {
	case tomlFormat:
		return removeTable(data, at[0], at[1])
	case yamlFormat:
		return yamledit.Remove(data, at[0], at[1])
	}
	return removeMember(data, at)
}

// verify checks that made decodes to the same value as data, except for the entry at path.
func (c Client) verify(data, made []byte, path []string, entry map[string]any) error {
	before, err := c.document(data)
	if err != nil {
		return err
	}
	after, err := c.document(made)
	if err != nil {
		return fmt.Errorf("%w (it would not be %s any more)", ErrUnsafe, c.format)
	}
	if entry != nil && !equalEntry(lookup(after, path), entry) {
		return ErrUnsafe
	}
	deletePath(before, path)
	deletePath(after, path)
	if !reflect.DeepEqual(before, after) {
		return ErrUnsafe
	}
	return nil
}

func lookup(doc map[string]any, path []string) any {
	for _, key := range path[:len(path)-1] {
		doc, _ = doc[key].(map[string]any)
	}
	return doc[path[len(path)-1]]
}

// deletePath removes the value at path, and mappings that are empty then.
func deletePath(doc map[string]any, path []string) {
	inner, ok := doc[path[0]].(map[string]any)
	switch {
	case len(path) == 1:
		delete(doc, path[0])
		return
	case ok:
		deletePath(inner, path[1:])
	}
	if len(inner) == 0 {
		delete(doc, path[0])
	}
}

// equalEntry reports whether a decoded entry equals meant, regardless of the types of numbers and lists.
func equalEntry(read any, meant map[string]any) bool {
	fields, ok := read.(map[string]any)
	if !ok || len(fields) != len(meant) {
		return false
	}
	for key, want := range meant {
		if list, ok := want.([]any); ok {
			if got, _ := fields[key].([]any); !slices.Equal(stringsOf(got), stringsOf(list)) || len(got) != len(list) {
				return false
			}
			continue
		}
		if fmt.Sprint(fields[key]) != fmt.Sprint(want) {
			return false
		}
	}
	return true
}
