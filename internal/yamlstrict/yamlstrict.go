// Package yamlstrict reads YAML and JSON that a person wrote, and refuses whatever is not understood: an unknown or a double
// key, a value of another kind, what YAML has and no one needs here (anchors, aliases, tags, merge keys). What is wrong is
// an [Error] with the line, a caret, and what was probably meant. Its main type is [Decoder].
//
// A package that reads a format of its own makes a [Source] of the text, takes the document's root from it, and walks it
// with a table of keys for each mapping:
//
//	src := strict.NewSource(path, data)
//	root, err := src.Document(`is empty; it needs at least the key "name"`)
//	if err != nil {
//		return nil, err
//	}
//	d := &strict.Decoder{Source: src}
//	d.Fields(strict.Path{}, root, []strict.Key{
//		{"name", d.Text(&t.Name)},
//		{"timeout", strict.Scalar(d, &t.Timeout, strict.Duration)},
//		{"mode", d.OneOf(&t.Mode, "read", "write")},
//		{"with", func(at strict.Path, n *yaml.Node) { d.Each(at, n, ...) }},
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

// Decoder walks the nodes of a file and collects what is wrong with them. The zero Decoder with a Source is ready; it is
// for one file and one goroutine.
type Decoder struct {
	// Source is the file.
	Source *Source
	// Label names the value at a path to someone who sees where it stands; nil is [Path.Label].
	Label func(at Path) string
	// Expand expands the references in the text of a node, and reports faults of its own; nil takes texts as they are.
	Expand func(at Path, n *yaml.Node) string
	// Meant translates what other programs call our keys, "" for none of them; nil knows none.
	Meant func(key string) string

	faults []Fault
	// places says where a path stands in the file, bad which paths have a fault.
	places map[string]Place
	bad    map[string]bool
}

// Place is where a value stands: its node and that of its key, which is the same in a list.
type Place struct{ Key, Value *yaml.Node }

// Reader reads the value at a path.
type Reader func(at Path, n *yaml.Node)

// Key is one key that a mapping may have.
type Key = struct {
	Name string
	Read Reader
}

// Path leads through the mappings and lists of a file: upstreams, memory, args, [0].
type Path []string

// To is the path of a member.
func (p Path) To(name string) Path { return append(slices.Clip(p), name) }

// Item is the path of an item of a list, counted from 0.
func (p Path) Item(i int) Path { return p.To(fmt.Sprintf("[%d]", i)) }

// Unknown is where the keys of a mapping that cannot be read are recorded as bad.
func (p Path) Unknown() Path { return p.To("\x00") }

// key is p as the key of a map.
func (p Path) key() string { return strings.Join(p, "\x00/") }

// String writes p as upstreams.memory.args[0].
func (p Path) String() string { return strings.ReplaceAll(strings.Join(p, "."), ".[", "[") }

// Label names the value at p by its key.
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

// Fail records a fault of the value at a path, with its place.
func (d *Decoder) Fail(at Path, n *yaml.Node, format string, args ...any) {
	d.FailAt(at, n.Line, n.Column, fmt.Sprintf(format, args...))
}

// FailAt is Fail with a place of the caller's.
func (d *Decoder) FailAt(at Path, line, column int, message string) {
	d.SetBad(at)
	d.Add(Fault{line, column, message})
}

// Add records a fault that makes no path bad.
func (d *Decoder) Add(f Fault) { d.faults = append(d.faults, f) }

// SetBad says that what is at a path means nothing, without a fault.
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

// Faults is how many there are so far.
func (d *Decoder) Faults() int { return len(d.faults) }

// Full says that looking for more is not worth the time.
func (d *Decoder) Full() bool { return len(d.faults) >= MaxFaults }

// Place returns where a path stands in the file.
func (d *Decoder) Place(at Path) (Place, bool) {
	p, ok := d.places[at.key()]
	return p, ok
}

func (d *Decoder) stands(at Path, key, value *yaml.Node) {
	if d.places == nil {
		d.places = map[string]Place{}
	}
	d.places[at.key()] = Place{key, value}
}

// Err returns what is wrong, as [Source.Errors] has it, nil if nothing is.
func (d *Decoder) Err() error { return d.Source.Errors(d.faults) }
