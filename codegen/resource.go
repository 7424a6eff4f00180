package codegen

import (
	"net/url"
	"strconv"
	"strings"
)

// settle rewrites the references in a schema to "$ref" with a pointer from the root of
// the document ("#/..."), if their target is in the document. It turns dynamic
// references into plain ones, and resolves references by $id ("address.json#/street").
func settle(root any) {
	s := &settler{parts: map[string]string{}, anchors: map[string]string{}}
	s.walk(root, part{base: &url.URL{}}, s.plain)
	if s.ids {
		s.parts[""] = ""
		s.walk(root, part{base: &url.URL{}}, s.collect)
		s.walk(root, part{base: &url.URL{}}, s.rewrite)
	}
}

// settler maps the $ids and anchors of a document to pointers.
type settler struct {
	parts, anchors map[string]string
	ids            bool // the document has $ids, so pointers are needed
}

// part is the position of a walk through a schema: the base URI and the pointer.
type part struct {
	base    *url.URL
	pointer string
}

func (s *settler) walk(v any, at part, visit func(*object, part)) {
	switch v := v.(type) {
	case *object:
		at.base = baseOf(v, at.base)
		visit(v, at)
		for _, k := range v.keys {
			switch k {
			case "enum", "const", "default", "examples", "example": // values, not schemas
			default:
				s.walk(v.values[k], s.into(at, k), visit)
			}
		}
	case []any:
		for i, item := range v {
			s.walk(item, s.into(at, strconv.Itoa(i)), visit)
		}
	}
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1", "%", "%25")

func (s *settler) into(at part, key string) part {
	if s.ids {
		at.pointer += "/" + pointerEscape.Replace(key)
	}
	return at
}

// baseOf returns the base URI of a schema: its own $id, made absolute, or base.
func baseOf(o *object, base *url.URL) *url.URL {
	for _, key := range []string{"$id", "id"} {
		id := o.text(key)
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

// plain turns dynamic references into plain ones and detects ids.
func (s *settler) plain(o *object, at part) {
	s.ids = s.ids || at.base.String() != ""
	for _, key := range []string{"$dynamicRef", "$recursiveRef"} {
		if ref := o.text(key); ref != "" && !o.has("$ref") {
			o.remove(key)
			o.set("$ref", ref)
		}
	}
}

func (s *settler) collect(o *object, at part) {
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

func (s *settler) rewrite(o *object, at part) {
	ref := o.text("$ref")
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
		o.set("$ref", "#"+pointer+fragment)
	}
}

// anchorsOf returns the anchors of a schema.
func anchorsOf(o *object) []string {
	var names []string
	for _, name := range []string{o.text("$anchor"), o.text("$dynamicAnchor"), fragmentOf(o.text("$id")), fragmentOf(o.text("id"))} {
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
