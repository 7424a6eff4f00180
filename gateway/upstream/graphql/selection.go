package graphql

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// What is selected by default.
const (
	maxPlain   = 40 // plain fields of an object
	maxObjects = 12 // objects in it
	maxShort   = 3  // plain fields of these if none of them is identifying
)

// identifying are the fields that are selected of an object in another one.
var identifying = []string{"id", "key", "number", "identifier", "name", "login", "username", "slug", "title", "displayName", "email", "state", "status", "url"}

// defaultSelection returns the fields of a result that are returned if a call selects none: all plain ones, and the identifying ones of
// the objects in it. Of a page or another object around a list it selects the elements in the same way.
func (a *API) defaultSelection(def *ast.Definition) ast.SelectionSet {
	elements, path := a.elements(def)
	if elements == nil {
		return a.plainFields(def, true)
	}
	set := a.plainFields(def, false)
	inner := a.plainFields(a.schema.Types[elements.Type.Name()], true)
	for _, name := range slices.Backward(path) {
		inner = ast.SelectionSet{newField(name, inner)}
	}
	set = append(set, inner...)
	if info := def.Fields.ForName("pageInfo"); info != nil && a.isComposite(info) {
		set = append(set, newField(info.Name, a.plainFields(a.schema.Types[info.Type.Name()], false)))
	}
	return set
}

// elements returns the field with the elements if a type is an object around one list of objects, and the names that lead to it: its own,
// or also that of the edges of a page.
func (a *API) elements(def *ast.Definition) (*ast.FieldDefinition, []string) {
	nodes, edges := def.Fields.ForName("nodes"), def.Fields.ForName("edges")
	switch {
	case nodes != nil && a.isObjectList(nodes):
		return nodes, []string{"nodes"}
	case edges != nil && a.isObjectList(edges):
		if node := a.schema.Types[edges.Type.Name()].Fields.ForName("node"); node != nil && a.isComposite(node) && !a.isRoot(node.Type.Name()) {
			return node, []string{"edges", "node"}
		}
	}
	var lists []*ast.FieldDefinition
	for _, f := range def.Fields {
		if a.isComposite(f) && !a.isObjectList(f) && f.Name != "pageInfo" {
			return nil, nil // more than a list
		}
		if a.isObjectList(f) {
			lists = append(lists, f)
		}
	}
	if len(lists) != 1 {
		return nil, nil
	}
	return lists[0], []string{lists[0].Name}
}

func (a *API) isObjectList(f *ast.FieldDefinition) bool {
	return f.Type.Elem != nil && a.isComposite(f) && !needsArgument(f) && !a.isRoot(f.Type.Name())
}

func newField(name string, set ast.SelectionSet) *ast.Field {
	return &ast.Field{Alias: name, Name: name, SelectionSet: set}
}

// plainFields returns the fields of a type that are no objects, and if asked for the objects in it that need no choice: no list, no argument.
func (a *API) plainFields(def *ast.Definition, objects bool) (set ast.SelectionSet) {
	if def.IsAbstractType() {
		set = append(set, newField("__typename", nil))
	}
	plain, inner := 0, 0
	for _, f := range def.Fields {
		switch {
		case isDeprecated(f) || needsArgument(f) || a.isRoot(f.Type.Name()):
		case !a.isComposite(f):
			if plain++; plain <= maxPlain {
				set = append(set, newField(f.Name, nil))
			}
		case objects && f.Type.Elem == nil && len(f.Arguments) == 0 && inner < maxObjects:
			inner++
			set = append(set, newField(f.Name, a.shortFields(a.schema.Types[f.Type.Name()])))
		}
	}
	if len(set) == 0 { // an object that has only objects
		set = ast.SelectionSet{newField("__typename", nil)}
	}
	return set
}

// shortFields returns the identifying fields of a type.
func (a *API) shortFields(def *ast.Definition) (set ast.SelectionSet) {
	all := a.plainFields(def, false)
	for _, s := range all {
		if name := s.(*ast.Field).Name; name == "__typename" || slices.Contains(identifying, name) {
			set = append(set, s)
		}
	}
	if len(set) == 0 {
		return all[:min(len(all), maxShort)]
	}
	return set
}

// without returns a selection without the fields at some paths, nil if nothing is left of it.
func without(set ast.SelectionSet, paths [][]string) (kept ast.SelectionSet) {
	for _, s := range set {
		f, ok := s.(*ast.Field)
		if !ok {
			kept = append(kept, s)
			continue
		}
		var below [][]string
		gone := false
		for _, p := range paths {
			if len(p) > 0 && p[0] == f.Alias {
				below, gone = append(below, p[1:]), gone || len(p) == 1
			}
		}
		inner := without(f.SelectionSet, below)
		if gone || len(f.SelectionSet) > 0 && len(inner) == 0 {
			continue
		}
		clone := *f
		clone.SelectionSet = inner
		kept = append(kept, &clone)
	}
	return kept
}
