// Package yamlstrict reads YAML and JSON that a person wrote, and refuses whatever is not understood: an unknown or a double
// key, a value of another kind, what YAML has and no one needs here (anchors, aliases, tags, merge keys). What is wrong is
// an [Error] with the line, a caret, and what was probably meant. Its main type is [Decoder].
//
// A package that reads a format of its own makes a [Source] of the text, takes the document's root from it, and walks it
// with a table of keys for each mapping:
//
//	src := yamlstrict.NewSource(path, data)
//	root, err := src.Document(`is empty; it needs at least the key "name"`)
//	if err != nil {
//		return nil, err
//	}
//	d := &yamlstrict.Decoder{Source: src}
//	d.Fields(yamlstrict.Path{}, root, []yamlstrict.Key{
//		{"name", d.Text(&t.Name)},
//		{"timeout", yamlstrict.Scalar(d, &t.Timeout, yamlstrict.Duration)},
//		{"mode", d.OneOf(&t.Mode, "read", "write")},
//		{"with", func(at yamlstrict.Path, n *yaml.Node) { d.Each(at, n, ...) }},
//	})
//	if err := d.Err(); err != nil {
//		return nil, err
//	}
//
// Each method that reads takes the path of the value, which names it in messages, and its node. Faults are collected, so
// that a person sees ten of them at once; what is read where one was found is not filled in.
package yamlstrict

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Decoder decodes the nodes of a file and collects faults. A Decoder with only a Source is ready; it is for one file
// and one goroutine.
type Decoder struct {
	// Source is the file.
	Source *Source
	// Label returns the name of the value at a path in messages; nil means [Path.Label].
	Label func(at Path) string
	// Expand expands the references in the text of a node, and reports its own faults; nil leaves texts unchanged.
	Expand func(at Path, n *yaml.Node) string
	// KeyAlias maps a key of other programs to ours, "" for an unknown one; nil maps none.
	KeyAlias func(key string) string
	// Advice says what to do about mistakes that people make.
	Advice Advice

	faults []Fault
	// places maps paths to positions, bad holds the paths with a fault.
	places map[string]Place
	bad    map[string]bool
}

// Place is the position of a value: its node and that of its key, which is the same in a list.
type Place struct{ Key, Value *yaml.Node }

// Reader decodes the value at a path.
type Reader func(at Path, n *yaml.Node)

// Key is one key that a mapping may have.
type Key = struct {
	Name string
	Read Reader
}

// Path is a path through the mappings and lists of a file: upstreams, memory, args, [0].
type Path []string

// To returns the path of a member.
func (p Path) To(name string) Path { return append(slices.Clip(p), name) }

// Item returns the path of a list item, counted from 0.
func (p Path) Item(i int) Path { return p.To(fmt.Sprintf("[%d]", i)) }

// Unknown is the path under which a mapping's unreadable keys are recorded as bad.
func (p Path) Unknown() Path { return p.To("\x00") }

// key returns p as a map key.
func (p Path) key() string { return strings.Join(p, "\x00/") }

// String writes p as upstreams.memory.args[0].
func (p Path) String() string { return strings.ReplaceAll(strings.Join(p, "."), ".[", "[") }

// Label returns the last key of p, quoted.
func (p Path) Label() string {
	if len(p) == 0 {
		return "the file"
	}
	return fmt.Sprintf("%.40q", p[len(p)-1])
}

func (d *Decoder) label(at Path) string {
	if d.Label != nil {
		return d.Label(at)
	}
	return at.Label()
}

// Fail records a fault of the value at a path, with its position.
func (d *Decoder) Fail(at Path, n *yaml.Node, format string, args ...any) {
	d.FailAt(at, n.Line, n.Column, fmt.Sprintf(format, args...))
}

// FailAt is Fail with an explicit position.
func (d *Decoder) FailAt(at Path, line, column int, message string) {
	d.SetBad(at)
	d.Add(Fault{line, column, message})
}

// Add records a fault without marking a path as bad.
func (d *Decoder) Add(f Fault) { d.faults = append(d.faults, f) }

// SetBad marks the value at a path as invalid, without a fault.
func (d *Decoder) SetBad(at Path) {
	if d.bad == nil {
		d.bad = map[string]bool{}
	}
	d.bad[at.key()] = true
}

// Bad reports whether one of these paths has a fault.
func (d *Decoder) Bad(paths ...Path) bool {
	return slices.ContainsFunc(paths, func(p Path) bool { return d.bad[p.key()] })
}

// Faults returns the number of faults so far.
func (d *Decoder) Faults() int { return len(d.faults) }

// Full reports whether there are too many faults to continue.
func (d *Decoder) Full() bool { return len(d.faults) >= MaxFaults }

// Place returns the position of a path in the file.
func (d *Decoder) Place(at Path) (Place, bool) {
	p, ok := d.places[at.key()]
	return p, ok
}

func (d *Decoder) setPlace(at Path, key, value *yaml.Node) {
	if d.places == nil {
		d.places = map[string]Place{}
	}
	d.places[at.key()] = Place{key, value}
}

// Err returns the faults as [Source.Errors] does, nil if there are none.
func (d *Decoder) Err() error { return d.Source.Errors(d.faults) }
