package bridge

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
)

// minScanLength is the length in bytes from which valid is faster than json.Valid.
const minScanLength = 4 << 10

// valid is json.Valid, but several times faster for long texts. Most of such a text is
// inside strings, which json.Valid scans byte by byte. valid removes the plain
// characters of strings first, and gives json.Valid the short rest.
func valid(raw []byte) bool {
	if len(raw) < minScanLength {
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

// appendString appends the escapes and the closing quote of the string whose content
// begins at raw. It returns what follows the string, and false if the string is invalid.
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

// plainLength returns the number of bytes before the first quote, backslash or control
// character.
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
