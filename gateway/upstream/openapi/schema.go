package openapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/sanitize"
)

const (
	maxNested = 300 // characters of a description inside a schema
	maxInline = 100 // levels of nesting of one schema
)

// schemas converts the schemas of one definition to JSON Schema. What a schema refers to becomes a member of $defs, so
// that cycles stay finite.
type schemas struct {
	l        *loader
	modern   bool // OpenAPI 3.1, whose schemas are JSON Schema
	response bool // of a result; else of arguments
	brief    bool // without descriptions
	names    map[reference]string
	taken    map[string]bool
	queue    []reference // that have a name, but no definition yet
	values   int         // that were converted
	uses     []use       // the references in the definition that is being converted
	cache    map[cacheKey]*converted
}

// use is a reference and its name in $defs.
type use struct {
	ref  reference
	name string
}

// converted is a definition that was converted before: many tools have the same ones.
type converted struct {
	data json.RawMessage
	uses []use
}

type cacheKey struct {
	ref             reference
	response, brief bool
}

// buildSchema returns a schema of at most about maxSchema bytes: with descriptions if they fit, and with the nearest
// definitions if not all fit. The others then are of any type.
func (r *reader) buildSchema(response bool, root func(s *schemas) (*object, error)) (json.RawMessage, error) {
	for _, brief := range []bool{false, true} {
		s := &schemas{l: r.l, modern: r.modern, response: response, brief: brief, names: map[reference]string{}, taken: map[string]bool{}, cache: r.cache}
		o, err := root(s)
		if err != nil {
			return nil, err
		}
		fits, err := s.addDefinitions(o)
		if err != nil {
			return nil, err
		}
		if fits || brief {
			return webapi.AppendJSON(nil, o), nil
		}
	}
	return nil, nil // not reached
}

// addDefinitions adds what o refers to, breadth first. It reports false if it stops because o is too large.
func (s *schemas) addDefinitions(o *object) (bool, error) {
	defs, size := newObject(), len(webapi.AppendJSON(nil, o))
	for len(s.queue) > 0 {
		if size > maxSchema && !s.brief {
			return false, nil
		}
		ref := s.queue[0]
		s.queue = s.queue[1:]
		data, err := s.definition(ref, size > maxSchema)
		if err != nil {
			return false, err
		}
		size += len(data)
		defs.Set(s.names[ref], data)
	}
	if len(defs.Keys()) > 0 {
		o.Set("$defs", defs)
	}
	return size <= maxSchema || s.brief, nil
}

// definition returns the definition of a reference, or only its type if there is no room for more.
func (s *schemas) definition(ref reference, full bool) (json.RawMessage, error) {
	if full {
		p, err := s.l.lookup(ref)
		if word := p.object().Text("type"); err == nil && validTypes[word] {
			return webapi.AppendJSON(nil, newObject("type", word)), nil
		}
		return json.RawMessage("{}"), err
	}
	key := cacheKey{ref, s.response, s.brief}
	if c := s.cache[key]; c != nil && s.sameNames(c.uses) {
		return c.data, s.l.meter.step()
	}
	p, err := s.l.lookup(ref)
	if err != nil {
		return nil, err
	}
	s.uses = nil
	v, err := s.convert(p, 0)
	if err != nil {
		return nil, err
	}
	c := &converted{webapi.AppendJSON(nil, v), s.uses}
	s.cache[key] = c
	return c.data, nil
}

// sameNames names references, and reports whether they get the names that they had before.
func (s *schemas) sameNames(uses []use) bool {
	for _, u := range uses {
		if s.nameOf(u.ref) != u.name {
			return false
		}
	}
	return true
}

// convert converts one schema. A reference that leads nowhere becomes a schema of any value.
func (s *schemas) convert(p place, depth int) (any, error) {
	if err := s.l.meter.step(); err != nil {
		return nil, err
	}
	if s.values++; depth > maxInline || s.values > maxConverted {
		return newObject(), nil
	}
	if b, ok := p.value.(bool); ok {
		return b, nil
	}
	o := p.object()
	if o == nil {
		return newObject(), nil
	}
	if _, ok := o.Get("$ref").(string); ok {
		return s.refer(p, depth)
	}
	return s.keywords(p, o, depth)
}

// refer converts a schema with a $ref. In OpenAPI 3.1 other keywords may be next to it.
func (s *schemas) refer(p place, depth int) (any, error) {
	ref, err := s.final(p)
	if isLimit(err) {
		return nil, err
	}
	if err != nil {
		s.l.note(err)
		return newObject(), nil
	}
	out := newObject()
	if s.modern {
		v, err := s.keywords(p, p.object(), depth)
		if err != nil {
			return nil, err
		}
		out, _ = v.(*object)
	}
	name := s.nameOf(ref)
	s.uses = append(s.uses, use{ref, name})
	out.Set("$ref", "#/$defs/"+name)
	return out, nil
}

// final returns where a chain of references ends.
func (s *schemas) final(p place) (reference, error) {
	for range maxHops {
		ref, _ := p.object().Get("$ref").(string)
		r, err := s.l.target(p.doc, ref)
		if err != nil {
			return r, err
		}
		if p, err = s.l.lookup(r); err != nil {
			return r, err
		}
		if o := p.object(); !o.Has("$ref") || s.modern && len(o.Keys()) > 1 {
			return r, nil
		}
	}
	return reference{}, errCycle
}

// nameOf returns the name of a definition in $defs: the last part of its reference, with a number if that is taken.
func (s *schemas) nameOf(r reference) string {
	if name := s.names[r]; name != "" {
		return name
	}
	base := strings.Map(nameRune, sanitize.Head(r.name(), 100))
	if base == "" {
		base = "value"
	}
	name := base
	for i := 2; s.taken[name]; i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	s.names[r], s.taken[name] = name, true
	s.queue = append(s.queue, r)
	return name
}

// nameRune keeps what needs no escape in a JSON pointer in a URL.
func nameRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '-':
		return r
	}
	return '_'
}

// isObject reports whether a schema allows objects only, as the structured content of a result needs.
func (s *schemas) isObject(p place, depth int) bool {
	p, err := s.l.resolve(p)
	o := p.object()
	if err != nil || o == nil || depth > 10 || o.Flag("nullable") {
		return false
	}
	switch t := o.Get("type").(type) {
	case string:
		return t == "object"
	case []any:
		return len(t) == 1 && t[0] == "object"
	}
	if o.Has("properties") {
		return true
	}
	for _, one := range o.List("allOf") {
		if s.isObject(place{p.doc, one}, depth+1) {
			return true
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if arms := o.List(key); len(arms) > 0 && s.allObjects(p.doc, arms, depth) {
			return true
		}
	}
	return false
}

func (s *schemas) allObjects(d *document, arms []any, depth int) bool {
	for _, one := range arms {
		if s.l.meter.step() != nil || !s.isObject(place{d, one}, depth+1) {
			return false
		}
	}
	return true
}

// prose returns a description of at most n characters.
func prose(text string, n int) string { return strings.TrimSpace(sanitize.Text(text, n)) }
