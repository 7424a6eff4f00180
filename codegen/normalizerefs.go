package codegen

import (
	"net/url"
	"strconv"
	"strings"
)

// normalizeRefs rewrites the references in a schema to "$ref" with a pointer from the root of
// the document ("#/..."), if their target is in the document. It turns dynamic
// references into plain ones, and resolves references by $id ("address.json#/street").
func normalizeRefs(root any) {
	s := &refNormalizer{parts: map[string]string{}, anchors: map[string]string{}}
	s.walk(root, location{base: &url.URL{}}, s.replaceDynamic)
	if s.ids {
		s.parts[""] = ""
		s.walk(root, location{base: &url.URL{}}, s.collect)
		s.walk(root, location{base: &url.URL{}}, s.rewrite)
	}
}

// refNormalizer maps the $ids and anchors of a document to pointers.
type refNormalizer struct {
	parts, anchors map[string]string
	ids            bool // the document has $ids, so pointers are needed
}

// location is the position of a walk through a schema: the base URI and the pointer.
type location struct {
	base    *url.URL
	pointer string
}

func (s *refNormalizer) walk(v any, at location, visit func(*object, location)) {
	switch v := v.(type) {
	case *object:
		at.base = baseOf(v, at.base)
		visit(v, at)
		for _, k := range v.Keys() {
			switch k {
			case "enum", "const", "default", "examples", "example": // values, not schemas
			default:
				s.walk(v.Get(k), s.child(at, k), visit)
			}
		}
	case []any:
		for i, item := range v {
			s.walk(item, s.child(at, strconv.Itoa(i)), visit)
		}
	}
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1", "%", "%25")

func (s *refNormalizer) child(at location, key string) location {
	if s.ids {
		at.pointer += "/" + pointerEscape.Replace(key)
	}
	return at
}

// baseOf returns the base URI of a schema: its own $id, made absolute, or base.
func baseOf(o *object, base *url.URL) *url.URL {
	for _, key := range []string{"$id", "id"} {
		id := o.Text(key)
		if id == "" || id[0] == '#' || len(id) > 4*maxName {
			continue
		}
		if u, err := base.Parse(id); err == nil {
			u.Fragment, u.RawFragment = "", ""
			return u
		}
	}
	return base
}

// replaceDynamic turns dynamic references into plain ones and detects ids.
func (s *refNormalizer) replaceDynamic(o *object, at location) {
	s.ids = s.ids || at.base.String() != ""
	for _, key := range []string{"$dynamicRef", "$recursiveRef"} {
		if ref := o.Text(key); ref != "" && !o.Has("$ref") {
			o.Remove(key)
			o.Set("$ref", ref)
		}
	}
}

func (s *refNormalizer) collect(o *object, at location) {
	base := at.base.String()
	if _, known := s.parts[base]; !known {
		s.parts[base] = at.pointer
	}
	for _, name := range anchorsOf(o) {
		if key := base + "#" + name; s.anchors[key] == "" {
			s.anchors[key] = at.pointer
		}
	}
}

func (s *refNormalizer) rewrite(o *object, at location) {
	ref := o.Text("$ref")
	if ref == "" || len(ref) > 4*maxName {
		return
	}
	u, err := at.base.Parse(ref)
	if err != nil {
		return
	}
	fragment := u.EscapedFragment()
	u.Fragment, u.RawFragment = "", ""
	pointer, known := s.parts[u.String()]
	if fragment != "" && !strings.HasPrefix(fragment, "/") {
		pointer, known = s.anchors[u.String()+"#"+fragment]
		fragment = ""
	}
	if known {
		o.Set("$ref", "#"+pointer+fragment)
	}
}

// anchorsOf returns the anchors of a schema.
func anchorsOf(o *object) []string {
	var names []string
	for _, name := range []string{o.Text("$anchor"), o.Text("$dynamicAnchor"), fragmentOf(o.Text("$id")), fragmentOf(o.Text("id"))} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// fragmentOf returns the name in an old-style id "#name", else "".
func fragmentOf(id string) string {
	name, _ := strings.CutPrefix(id, "#")
	if name == id {
		return ""
	}
	return name
}
