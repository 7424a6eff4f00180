package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// splice replaces data[from:to].
type splice struct {
	from, to int
	text     string
}

func applyEdits(data []byte, all ...splice) []byte {
	slices.SortFunc(all, func(a, b splice) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, s := range all {
		out = append(append(out, data[at:s.from]...), s.text...)
		at = s.to
	}
	return append(out, data[at:]...)
}

// jsonFile is a JSON file and its syntax tree.
type jsonFile struct {
	data []byte
	root hujson.Value
	unit string // one step of indentation
	eol  string
}

func parseJSON(data []byte) (*jsonFile, error) {
	f := &jsonFile{data: data, unit: unitOf(data), eol: "\n"}
	if at := bytes.IndexByte(data, '\n'); at > 0 && data[at-1] == '\r' {
		f.eol = "\r\n"
	}
	var err error // the last line may be a comment, which must end
	if f.root, err = hujson.Parse(append(bytes.Clone(data), '\n')); err != nil {
		return nil, fmt.Errorf("%w: it is not JSON%s", ErrSyntax, placeOf(err))
	}
	if _, ok := f.root.Value.(*hujson.Object); !ok {
		return nil, fmt.Errorf("%w: it is not an object", ErrSyntax)
	}
	return f, nil
}

var indented = regexp.MustCompile(`(?m)^([ \t]+)\S`)

// unitOf returns the indentation of the first indented line, two spaces by default.
func unitOf(data []byte) string {
	if m := indented.FindSubmatch(data); m != nil && len(m[1]) <= 8 {
		return string(m[1])
	}
	return "  "
}

// byteOrderMark is the byte order mark, which hujson does not support.
const byteOrderMark = "\ufeff"

// addMember adds a member with an object of fields to the object at the top-level key section.
func addMember(data []byte, section, name string, entry fields) ([]byte, error) {
	if rest, ok := bytes.CutPrefix(data, []byte(byteOrderMark)); ok {
		made, err := addMember(rest, section, name, entry)
		return append([]byte(byteOrderMark), made...), err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{\n}\n")
	}
	f, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	root := f.root.Value.(*hujson.Object)
	at, err := findMember(root, section)
	switch {
	case err != nil:
		return nil, err
	case at < 0:
		return f.insert(&f.root, section, func(indent, eol string) string {
			inner := ""
			if eol != "" {
				inner = indent + f.unit
			}
			return "{" + eol + inner + quote(name) + ": " + object(entry, inner, f.unit, eol) + eol + indent + "}"
		}), nil
	case root.Members[at].Value.Value.Kind() == 'n':
		value := root.Members[at].Value
		indent := f.indentAt(value.StartOffset)
		text := "{" + f.eol + indent + f.unit + quote(name) + ": " + object(entry, indent+f.unit, f.unit, f.eol) + f.eol + indent + "}"
		return applyEdits(data, splice{value.StartOffset, value.EndOffset, text}), nil
	case root.Members[at].Value.Value.Kind() != '{':
		return nil, fmt.Errorf("has something else than servers under %q", section)
	}
	return f.insert(&root.Members[at].Value, name, func(indent, eol string) string { return object(entry, indent, f.unit, eol) }), nil
}

// findMember returns the index of a member, -1 if there is none. A duplicate is an error.
func findMember(o *hujson.Object, name string) (int, error) {
	found := -1
	for i, m := range o.Members {
		if literal, ok := m.Name.Value.(hujson.Literal); !ok || literal.String() != name {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("has the key %q twice; keep one", name)
		}
		found = i
	}
	return found, nil
}

// item is a member of an object or an element of an array: its first value is the name
// of a member.
type item struct{ first, last *hujson.Value }

// name returns the name of a member, or an element that is a string.
func (i item) name() string {
	if literal, ok := i.first.Value.(hujson.Literal); ok && literal.Kind() == '"' {
		return literal.String()
	}
	return ""
}

func itemsOf(v *hujson.Value) []item {
	var all []item
	switch v := v.Value.(type) {
	case *hujson.Object:
		for i := range v.Members {
			all = append(all, item{&v.Members[i].Name, &v.Members[i].Value})
		}
	case *hujson.Array:
		for i := range v.Elements {
			all = append(all, item{&v.Elements[i], &v.Elements[i]})
		}
	}
	return all
}

// afterItems returns what is between the last item and the closing bracket.
func afterItems(v *hujson.Value) hujson.Extra {
	if list, ok := v.Value.(*hujson.Array); ok {
		return list.AfterExtra
	}
	return v.Value.(*hujson.Object).AfterExtra
}

// insert adds a member at the end of an object, see insertItem.
func (f *jsonFile) insert(at *hujson.Value, name string, value func(indent, eol string) string) []byte {
	return f.insertItem(at, func(indent, eol string) string { return quote(name) + ": " + value(indent, eol) })
}

// insertItem adds an item at the end of an object or array: on separate lines, unless it
// is not empty and on one line. text formats the item for an indentation, on one line if
// eol is "".
func (f *jsonFile) insertItem(at *hujson.Value, format func(indent, eol string) string) []byte {
	items := itemsOf(at)
	closing := at.EndOffset - 1
	extra := f.data[closing-len(afterItems(at)) : closing]
	n := len(items)
	trailing := n > 0 && items[n-1].last.AfterExtra != nil
	var comma []splice
	if n > 0 && !trailing {
		end := items[n-1].last.EndOffset
		comma = []splice{{end, end, ","}}
	}
	newline := bytes.LastIndexByte(extra, '\n')
	if newline < 0 && n > 0 {
		text := " " + format("", "")
		if trailing {
			text += ","
		}
		end := closing - (len(extra) - len(bytes.TrimRight(extra, " \t")))
		return applyEdits(f.data, append(comma, splice{end, end, text})...)
	}
	indent := f.indentAt(closing) + f.unit
	if n > 0 {
		indent = f.indentOf(*items[n-1].first, indent)
	}
	text := indent + format(indent, f.eol)
	if trailing {
		text += ","
	}
	if newline < 0 {
		return applyEdits(f.data, splice{closing, closing, f.eol + text + f.eol + f.indentAt(at.StartOffset)})
	}
	line := closing - len(extra) + newline + 1
	return applyEdits(f.data, append(comma, splice{line, line, text + f.eol})...)
}

// indentAt returns the indentation of the line of an offset.
func (f *jsonFile) indentAt(offset int) string {
	line := f.data[bytes.LastIndexByte(f.data[:offset], '\n')+1 : offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// indentOf returns the indentation of a member that starts its line, or else otherwise.
func (f *jsonFile) indentOf(name hujson.Value, otherwise string) string {
	line := f.data[bytes.LastIndexByte(f.data[:name.StartOffset], '\n')+1 : name.StartOffset]
	if len(bytes.TrimLeft(line, " \t")) > 0 {
		return otherwise
	}
	return string(line)
}

func quote(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string is always JSON
	return strings.TrimSuffix(b.String(), "\n")
}

// object formats fields with an indentation, on one line if eol is "".
func object(entry fields, indent, unit, eol string) string {
	var b strings.Builder
	b.WriteString("{")
	for i, f := range entry {
		switch {
		case i > 0 && eol == "":
			b.WriteString(", ")
		case i > 0:
			b.WriteString(",")
		}
		if eol != "" {
			b.WriteString(eol + indent + unit)
		}
		b.WriteString(quote(f.name) + ": ")
		switch v := f.value.(type) {
		case fields:
			b.WriteString(object(v, "", "", ""))
		case string:
			b.WriteString(quote(v))
		case []string:
			quoted := make([]string, len(v))
			for i, s := range v {
				quoted[i] = quote(s)
			}
			b.WriteString("[" + strings.Join(quoted, ", ") + "]")
		}
	}
	if eol != "" {
		b.WriteString(eol + indent)
	}
	return b.String() + "}"
}

// removeMember removes the member at a path, with its comma, and its lines if nothing
// else is on them. Comments stay.
func removeMember(data []byte, path []string) ([]byte, error) {
	return withoutMark(data, func(data []byte) ([]byte, error) {
		name := path[len(path)-1]
		f, at, err := findValue(data, path[:len(path)-1])
		if err != nil {
			return nil, err
		}
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return nil, ErrUnsafe
		}
		i, err := findMember(o, name)
		if err != nil || i < 0 {
			return nil, fmt.Errorf("%w: %q is not there once", ErrUnsafe, name)
		}
		return f.removeAt(at, i), nil
	})
}

// withoutMark edits data without its byte order mark.
func withoutMark(data []byte, edit func([]byte) ([]byte, error)) ([]byte, error) {
	rest, marked := bytes.CutPrefix(data, []byte(byteOrderMark))
	made, err := edit(rest)
	if err != nil || !marked {
		return made, err
	}
	return append([]byte(byteOrderMark), made...), nil
}

// removeAt removes an item of an object or array.
func (f *jsonFile) removeAt(in *hujson.Value, at int) []byte {
	items := itemsOf(in)
	m := items[at]
	from, to := m.first.StartOffset, m.last.EndOffset
	var comma []splice
	last := at+1 == len(items)
	if !last || m.last.AfterExtra != nil { // its own comma, right behind it or after a comment
		c := to + len(m.last.AfterExtra)
		if c == to {
			to++
		} else {
			comma = []splice{{c, c + 1, ""}}
		}
	} else if at > 0 { // the one before it
		before := items[at-1].last
		c := before.EndOffset + len(before.AfterExtra)
		comma = []splice{{c, c + 1, ""}}
	}
	start := bytes.LastIndexByte(f.data[:from], '\n') + 1
	rest := f.data[to:]
	end := bytes.IndexByte(rest, '\n')
	switch {
	case end >= 0 && len(bytes.TrimSpace(f.data[start:from])) == 0 && len(bytes.TrimSpace(rest[:end])) == 0:
		from, to = start, to+end+1
	case bytes.HasPrefix(rest, []byte(" ")) && bytes.ContainsAny(f.data[from-1:from], " [{"):
		to++
	case bytes.ContainsAny(f.data[to:to+1], "]}") && bytes.HasSuffix(f.data[:from], []byte(", ")):
		from--
	}
	return applyEdits(f.data, append(comma, splice{from, to, ""})...)
}
