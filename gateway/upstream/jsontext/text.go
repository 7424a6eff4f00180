// Package jsontext reads and shortens JSON texts that are large or nested too deep.
package jsontext

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// LongText is the length in bytes from which a string is read with one copy only.
const LongText = 64 << 10

// escapes are those of RFC 8259, section 7, except \u.
var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// LongString decodes a string in valid JSON as [json.Unmarshal] does, with one copy instead of
// three. ok is false for other values, and for invalid UTF-8.
func LongString(raw json.RawMessage) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' || !utf8.Valid(raw) {
		return "", false
	}
	var b strings.Builder
	b.Grow(len(raw))
	for rest := raw[1 : len(raw)-1]; ; {
		at := bytes.IndexByte(rest, '\\')
		if at < 0 {
			b.Write(rest)
			return b.String(), true
		}
		b.Write(rest[:at])
		r, size := unescape(rest[at:])
		if size == 0 {
			return "", false
		}
		b.WriteRune(r)
		rest = rest[at+size:]
	}
}

// unescape decodes the escape at the start of data and returns its length, 0 if it is invalid.
func unescape(data []byte) (r rune, size int) {
	if len(data) < 2 {
		return 0, 0
	}
	if c, ok := escapes[data[1]]; ok {
		return rune(c), 2
	}
	high, ok := codeUnit(data)
	if !ok {
		return 0, 0
	}
	if low, ok := codeUnit(data[6:]); ok && utf16.IsSurrogate(high) {
		if r = utf16.DecodeRune(high, low); r != utf8.RuneError {
			return r, 12
		}
	}
	if utf16.IsSurrogate(high) {
		return utf8.RuneError, 6
	}
	return high, 6
}

// codeUnit decodes the UTF-16 code unit \uXXXX at the start of data.
func codeUnit(data []byte) (rune, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(n), err == nil
}
