package jsontext

import "bytes"

// MaxDepth is how deep a message may be nested: what is deeper the SDK does not
// read, and takes for the end of the connection.
const MaxDepth = 1000

// Pruned stands, as a JSON string, for what was too deep. An upstream that sends
// it itself only makes its own definition be left out.
const Pruned = `"\u2702 nested too deep"`

// Prune replaces what is nested deeper than [MaxDepth], and reports whether there
// was anything. What is no JSON stays none.
func Prune(data []byte) ([]byte, bool) {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= MaxDepth {
		return data, false // as nearly all, and quick
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

// EndOfString returns where the string that begins at i ends: the place of its closing quote.
func EndOfString(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}
