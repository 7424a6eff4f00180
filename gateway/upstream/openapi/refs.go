package openapi

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"sallyport/internal/sanitize"
)

// place is a value and the file in which it is, from which its references start.
type place struct {
	doc   *document
	value any
}

func (p place) object() *object { o, _ := p.value.(*object); return o }

// in returns the place of a member.
func (p place) in(key string) place { return place{p.doc, p.object().Get(key)} }

// reference is the target of a $ref.
type reference struct{ file, pointer string }

// name returns a short name for what a reference points to.
func (r reference) name() string {
	_, name, ok := cutLast(r.pointer, "/")
	if !ok || name == "" {
		_, name, _ = cutLast("/"+r.file, "/")
		name, _, _ = strings.Cut(name, ".")
	}
	return unescape(name)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// target returns what a $ref in d refers to.
func (l *loader) target(d *document, ref string) (reference, error) {
	file, pointer, _ := strings.Cut(ref, "#")
	name, err := l.related(d, file)
	if err != nil {
		return reference{}, err
	}
	if pointer != "" && pointer[0] != '/' {
		return reference{}, fmt.Errorf("the reference %s is not a JSON pointer", show(ref))
	}
	return reference{name, pointer}, nil
}

// lookup returns the value that a reference points to, which may be a reference.
func (l *loader) lookup(r reference) (place, error) {
	d, err := l.open(r.file)
	if err != nil {
		return place{}, err
	}
	v := d.root
	for _, part := range strings.Split(r.pointer, "/")[1:] {
		if err := l.meter.step(); err != nil {
			return place{}, err
		}
		next, ok := member(v, unescape(part))
		if !ok {
			return place{}, fmt.Errorf("the reference %s#%s points to nothing", show(r.file), sanitize.Line(r.pointer, 200))
		}
		v = next
	}
	return place{d, v}, nil
}

func member(v any, key string) (any, bool) {
	switch v := v.(type) {
	case *object:
		return v.Get(key), v.Has(key)
	case []any:
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}

// unescape decodes a part of a JSON pointer in a URL.
func unescape(part string) string {
	if decoded, err := url.PathUnescape(part); err == nil {
		part = decoded
	}
	return pointerEscapes.Replace(part)
}

var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

var errCycle = errors.New("a reference refers to itself")

// resolve follows references until a value that is none.
func (l *loader) resolve(p place) (place, error) {
	for range maxHops {
		ref, ok := p.object().Get("$ref").(string)
		if !ok {
			return p, nil
		}
		if err := l.meter.step(); err != nil {
			return p, err
		}
		r, err := l.target(p.doc, ref)
		if err != nil {
			return p, err
		}
		if p, err = l.lookup(r); err != nil {
			return p, err
		}
	}
	return p, errCycle
}
