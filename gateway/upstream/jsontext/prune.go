package jsontext

import "bytes"

// MaxDepth is how deep a message may be nested: the SDK closes the connection on
// deeper messages.
const MaxDepth = 1000

// Pruned is the JSON string that replaces a value that is too deep. An upstream that
// sends it only gets its own definition skipped.
const Pruned = `"\u2702 nested too deep"`

// Prune replaces values nested deeper than [MaxDepth], and reports whether there
// were any. Invalid JSON stays invalid.
func Prune(data []byte) ([]byte, bool) {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= MaxDepth {
		return data, false // the common case
	}
	var out []byte
	depth, from, deep := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = EndOfString(data, i)
		case '{', '[':
			if depth++; depth == MaxDepth+1 {
				out, deep = append(append(out, data[from:i]...), Pruned...), true
			}
		case '}', ']':
			if depth--; depth == MaxDepth {
				from = i + 1
			}
		}
	}
	if !deep {
		return data, false
	}
	if depth <= MaxDepth {
		out = append(out, data[from:]...)
	}
	return out, true
}

// EndOfString returns the index of the closing quote of the string that begins at i.
func EndOfString(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}
