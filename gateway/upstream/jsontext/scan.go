package jsontext

import (
	"bytes"
	"encoding/json"
)

// maxKey is the length in bytes of the longest member name that is read.
const maxKey = 64

// Scan calls note for each member of the object, or element of the list, at the start of
// data, even if it is invalid JSON. Values are parts of data, not copies; an element has
// the key "". It returns the length of the object or list, len(data) if it has no end.
func Scan(data []byte, note func(key string, value json.RawMessage)) int {
	depth, m := 0, memberScanner{note: note, data: data, from: -1}
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '"':
			begin := i
			if i = EndOfString(data, i); depth == 1 {
				m.name(begin, i)
			}
		case ':', ',':
			if depth == 1 {
				m.mark(c, i)
			}
		case '{', '[':
			if depth++; depth == 1 && c == '[' {
				m.list, m.from = true, i+1
			}
		case '}', ']':
			if depth == 1 {
				m.mark(c, i)
			}
			if depth--; depth <= 0 {
				return i + 1
			}
		}
	}
	return len(data)
}

// memberScanner is the state of a scan: the current member of the outermost object, or element of the outermost list.
type memberScanner struct {
	note func(key string, value json.RawMessage)
	data []byte
	list bool
	key  string
	from int // where its value begins, -1 before that
}

// name takes the string at begin to end as the key, unless it is part of a value.
func (m *memberScanner) name(begin, end int) {
	if m.from < 0 && end < len(m.data) && end-begin < maxKey {
		m.key = ""
		_ = json.Unmarshal(m.data[begin:end+1], &m.key) // "" if it is invalid
	}
}

// mark handles a delimiter: a colon, a comma or a closing bracket.
func (m *memberScanner) mark(c byte, at int) {
	if c == ':' {
		if m.from < 0 {
			m.from = at + 1
		}
		return
	}
	if m.from >= 0 {
		if value := bytes.TrimSpace(m.data[m.from:at]); len(value) > 0 || !m.list {
			m.note(m.key, value)
		}
	}
	if m.key, m.from = "", -1; m.list {
		m.from = at + 1
	}
}
