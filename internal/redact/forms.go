package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
)

// formsOf returns all encoded forms of secrets.
func formsOf(secrets []string) [][]byte {
	var all forms
	for _, s := range secrets {
		if len(s) < Shortest {
			continue
		}
		all.addSecret(s)
		for line := range strings.Lines(s) { // a private key may be output line by line
			const least = 20
			if line = strings.TrimSpace(line); len(line) >= least && len(line) < len(s) && !strings.HasPrefix(line, "-----") {
				all.addSecret(line)
			}
		}
	}
	return longestFirst(all)
}

type forms [][]byte

func (f *forms) add(texts ...string) {
	for _, t := range texts {
		// A number of JSON may look like one of digits alone, and must stay a number.
		if len(t) >= Shortest && strings.Trim(t, "0123456789.+-eE") != "" {
			*f = append(*f, []byte(t))
		}
	}
}

func (f *forms) addSecret(s string) {
	for _, t := range []string{s, url.QueryEscape(s), url.PathEscape(s), inURL(s), smallEscapes(url.QueryEscape(s)), smallEscapes(inURL(s)), html.EscapeString(s)} {
		f.addJSON(t)
	}
	for _, t := range []string{s, url.QueryEscape(s), url.PathEscape(s), inURL(s), html.EscapeString(s), inJSON(s, false), inJSON(s, true)} {
		f.addEncoded(t)
	}
	f.add(hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s))))
}

// addEncoded adds the base64 forms of a text, encoded once and twice.
func (f *forms) addEncoded(t string) {
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			part := inner(enc, t, shift)
			f.add(part, strings.ReplaceAll(part, "/", `\/`), url.QueryEscape(part))
			for again := range 3 {
				f.add(inner(enc, part, again))
			}
		}
	}
}

// addJSON adds the forms of a text in a JSON string, up to three levels deep.
func (f *forms) addJSON(t string) {
	f.add(t)
	for _, write := range []func(string) string{
		func(s string) string { return inJSON(s, false) }, func(s string) string { return inJSON(s, true) },
		func(s string) string { return strings.ReplaceAll(inJSON(s, false), "/", `\/`) }, inASCII,
	} {
		once := write(t)
		twice := inJSON(once, false)
		f.add(once, twice, inJSON(twice, false))
	}
}

// inJSON returns a text as escaped in a JSON string, without the quotes.
func inJSON(text string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	_ = enc.Encode(text) // a string can always be encoded
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
}

// inASCII is inJSON as Python writes it: ASCII only.
func inASCII(text string) string {
	var b strings.Builder
	for _, r := range inJSON(text, false) {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	return b.String()
}

// inURL encodes a text as JavaScript's encodeURIComponent does.
func inURL(text string) string {
	escaped := url.QueryEscape(text)
	for _, c := range []string{"!", "'", "(", ")", "*"} {
		escaped = strings.ReplaceAll(escaped, url.QueryEscape(c), c)
	}
	return strings.ReplaceAll(escaped, "+", "%20")
}

// smallEscapes writes escapes in lower case: %2F as %2f.
func smallEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// inner returns the base64 of s at offset shift within a longer text, without the digits at both ends that depend on
// the context.
func inner(enc *base64.Encoding, s string, shift int) string {
	text := enc.EncodeToString([]byte(strings.Repeat("x", shift) + s))
	first := []int{0, 2, 3}[shift]
	last := (shift + len(s)) * 8 / 6
	return text[min(first, len(text)):min(last, len(text))]
}
