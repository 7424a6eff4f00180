package bridge

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
)

// long is the length in bytes from which it is quicker to look at a text twice.
const long = 4 << 10

// valid is json.Valid, several times as quick for long texts: most of those is inside
// of strings, which json.Valid goes through byte by byte. It gets the text without
// what makes no difference there, unless that is most of it.
func valid(raw []byte) bool {
	if len(raw) < long {
		return json.Valid(raw)
	}
	whole, short := raw, make([]byte, 0, min(len(raw)/4, 64<<10))
	for {
		if len(short) > len(whole)/4 {
			return json.Valid(whole)
		}
		at := bytes.IndexByte(raw, '"')
		if at < 0 {
			return json.Valid(append(short, raw...))
		}
		short = append(short, raw[:at+1]...)
		rest, ok := appendString(&short, raw[at+1:])
		if !ok {
			return false
		}
		raw = rest
	}
}

// appendString writes what matters of a string that begins in front of raw: its
// escapes and its end. It returns what follows, and false if that is no string.
func appendString(short *[]byte, raw []byte) (rest []byte, ok bool) {
	for {
		raw = raw[plainLength(raw):]
		switch {
		case len(raw) < 2 && (len(raw) == 0 || raw[0] != '"') || raw[0] < ' ':
			return nil, false
		case raw[0] == '"':
			*short = append(*short, '"')
			return raw[1:], true
		}
		size := 2 // an escape
		if raw[1] == 'u' {
			size += min(4, plainLength(raw[2:]))
		}
		*short = append(*short, raw[:size]...)
		raw = raw[size:]
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plainLength is how many bytes there are before the first that means something
// in a string: a quote, a backslash, a control character.
func plainLength(raw []byte) int {
	n := 0
	for ; n+8 <= len(raw); n += 8 {
		eight := binary.LittleEndian.Uint64(raw[n:])
		control, quote, slash := (eight-ones*' ')&^eight, eight^ones*'"', eight^ones*'\\'
		if (control|(quote-ones)&^quote|(slash-ones)&^slash)&highs != 0 {
			break
		}
	}
	for ; n < len(raw) && raw[n] >= ' ' && raw[n] != '"' && raw[n] != '\\'; n++ {
	}
	return n
}
