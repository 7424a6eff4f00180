package upstream

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// mask keeps the secrets of the settings out of all that an upstream sends: results,
// definitions, questions and notifications, before anybody reads them. Unlike a veil,
// which is for errors and blots out every value, it knows only what looks like a
// secret: a path or a mode in the environment may be in a result.
type mask struct{ forms [][]byte }

// newMask makes a mask of secrets, in each form in which they may come back.
func newMask(secrets []string) *mask {
	m := &mask{}
	for _, s := range secrets {
		if len(s) < shortestSecret {
			continue
		}
		m.add(s, url.QueryEscape(s), url.PathEscape(s), hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s))))
		for _, escape := range []bool{false, true} {
			m.add(inJSON(s, escape), strings.ReplaceAll(inJSON(s, escape), "/", `\/`), inJSON(inJSON(s, escape), escape))
		}
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for shift := range 3 {
				m.add(inner(enc, s, shift))
			}
		}
	}
	slices.SortFunc(m.forms, func(a, b []byte) int { return cmp.Compare(len(b), len(a)) })
	m.forms = slices.CompactFunc(m.forms, bytes.Equal)
	return m
}

func (m *mask) add(forms ...string) {
	for _, f := range forms {
		// A number of JSON may look like one of digits alone, and must stay a number.
		if len(f) >= shortestSecret && strings.Trim(f, "0123456789.+-eE") != "" {
			m.forms = append(m.forms, []byte(f))
		}
	}
}

// inJSON is a text between the quotes of a string of JSON.
func inJSON(text string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	_ = enc.Encode(text) // a string can always be encoded
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
}

// inner is what the base64 of a longer text has that holds s behind shift bytes,
// without the digits at both ends that depend on what is around it.
func inner(enc *base64.Encoding, s string, shift int) string {
	text := enc.EncodeToString([]byte(strings.Repeat("x", shift) + s))
	first := []int{0, 2, 3}[shift]
	last := (shift + len(s)) * 8 / 6
	return text[min(first, len(text)):min(last, len(text))]
}

// hide returns data without the secrets.
func (m *mask) hide(data []byte) []byte {
	if m == nil {
		return data
	}
	for _, form := range m.forms {
		if bytes.Contains(data, form) {
			data = bytes.ReplaceAll(data, form, []byte("[hidden]"))
		}
	}
	return data
}

// message hides what is in a message.
func (v veil) message(msg jsonrpc.Message) {
	for _, m := range []*mask{v.mask, v.tokens.mask.Load()} {
		switch msg := msg.(type) {
		case *jsonrpc.Response:
			msg.Result = m.hide(msg.Result)
			if e := answered(msg.Error); e != nil {
				e.Message, e.Data = string(m.hide([]byte(e.Message))), m.hide(e.Data)
			}
		case *jsonrpc.Request:
			msg.Params = m.hide(msg.Params)
		}
	}
}

// secretsOf returns the values of the settings that look like secrets.
func secretsOf(s Settings) []string {
	var secrets []string
	add := func(name, value string) {
		if isSecret(name, value) {
			secrets = append(secrets, value)
			if _, rest, ok := strings.Cut(value, " "); ok { // "Bearer TOKEN"
				secrets = append(secrets, rest)
			}
		}
	}
	for name, value := range s.Env {
		add(name, value)
	}
	for name, value := range s.Headers {
		add(name, value)
	}
	for i, arg := range s.Args {
		name, value, ok := strings.Cut(arg, "=")
		switch {
		case ok && strings.HasPrefix(name, "-"):
			add(name, value)
		case i > 0 && strings.HasPrefix(s.Args[i-1], "-"):
			add(s.Args[i-1], arg)
		default:
			add("", arg)
		}
	}
	if u, err := url.Parse(s.URL); err == nil {
		password, _ := u.User.Password()
		add("password", password)
		for name, values := range u.Query() {
			for _, value := range values {
				add(name, value)
			}
		}
	}
	return secrets
}

// isSecret judges a value by its name, or else by its looks.
func isSecret(name, value string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) })
	if len(words) > 0 && slices.Contains([]string{"type", "mode", "url", "uri", "file", "path", "dir", "name", "id", "user", "endpoint", "host"}, words[len(words)-1]) ||
		strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "../") {
		return false
	}
	for _, w := range words {
		for _, part := range []string{"token", "key", "secret", "passw", "passphrase", "pwd", "auth", "credential", "cookie", "bearer", "pat"} {
			if w == part || len(part) > 3 && strings.Contains(w, part) || part == "key" && strings.HasSuffix(w, part) {
				return true
			}
		}
	}
	return looksRandom(value)
}

// looksRandom: long, of one word, with letters and digits in no order.
func looksRandom(value string) bool {
	if len(value) < 20 || strings.ContainsAny(value, " /\\@:,") {
		return false
	}
	kinds, changes, last := map[int]bool{}, 0, -1
	for _, r := range value {
		kind := 0
		switch {
		case unicode.IsDigit(r):
			kind = 1
		case unicode.IsUpper(r):
			kind = 2
		case !unicode.IsLetter(r):
			kind = 3
		}
		if kind != last {
			changes++
		}
		kinds[kind], last = true, kind
	}
	return kinds[1] && (kinds[0] || kinds[2]) && changes*4 >= len(value)
}
