package pii

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// ErrForgotten is the error for a token with an evicted value.
var ErrForgotten = errors.New("its value is no longer kept")

const (
	// maxValues and maxBytes bound one vault; beyond them the oldest values are evicted.
	maxValues = 100_000
	maxBytes  = 32 << 20
	// maxOrigins bounds the recorded origins of one value.
	maxOrigins = 16
)

// Vault maps tokens to values, in memory only. The same value has the same token. An e-mail address in another case,
// or a number with other separators, has the number of the first one and its own spelling ([EMAIL_1_2]), so that a
// restored value is exactly the original. Numbers are never reused. It is safe for concurrent use.
type Vault struct {
	mu     sync.Mutex
	limit  int
	given  numbers
	last   map[string]int // how many values of a kind there were
	values map[valueKey]*entry
	tokens map[tokenKey]*entry
	same   map[sameKey]*group
	oldest []*entry
	bytes  int
	names  names
	index  index
	// sentTo are the upstreams that were sent values.
	sentTo   map[string]bool
	exchange exchange
}

type valueKey struct {
	kind   Kind
	value  string
	number bool
}

type tokenKey struct {
	label         string
	number, spell int
}

type sameKey struct {
	kind  Kind
	value string // normal
}

// group is the set of spellings of one value.
type group struct{ number, spellings, kept int }

type entry struct {
	valueKey
	token   tokenKey
	text    string // of the token
	origins []string
	sent    []string // the upstreams that were sent it
	part    bool     // of a value: found through the whole value
	adopted bool     // of another process
	changed bool     // since the last StoreChanged
}

func newVault(limit int, lease func(size int) int) *Vault {
	return &Vault{limit: limit, given: numbers{lease: lease}, last: map[string]int{}, values: map[valueKey]*entry{}, tokens: map[tokenKey]*entry{}, same: map[sameKey]*group{}}
}

// UnknownToken returns the first token in a text that this vault does not know, such as one of an older vault; "" if
// there is none.
func (v *Vault) UnknownToken(text string) string {
	return v.firstToken(text, func(e *entry, evicted error) bool { return e == nil && evicted == nil })
}

// LacksToken reports whether a text has a token of which this vault has no value.
func (v *Vault) LacksToken(text string) bool {
	return v.firstToken(text, func(e *entry, _ error) bool { return e == nil }) != ""
}

// firstToken returns the first token in a text for which is reports true, "" for none.
func (v *Vault) firstToken(text string, is func(e *entry, evicted error) bool) string {
	for i := range len(text) {
		if text[i] != '[' && text[i] != '%' {
			continue
		}
		if k, ok := readToken(text, i); ok && is(v.look(k)) {
			return text[i:k.end]
		}
	}
	return ""
}

// Token returns the token of a value that came from origin.
func (v *Vault) Token(kind Kind, value string, number bool, origin string) string {
	return v.token(valueKey{kind, value, number}, origin, false)
}

// PartToken is Token for a part or an encoding of a value: it is restored, but not searched for by itself.
func (v *Vault) PartToken(kind Kind, value string, number bool, origin string) string {
	return v.token(valueKey{kind, value, number}, origin, true)
}

func (v *Vault) token(key valueKey, origin string, part bool) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.values[key]
	switch {
	case e == nil:
		key.value = strings.Clone(key.value)
		e = v.keep(key, part)
	case e.part && !part: // now seen as a whole value
		e.part = false
		v.index.add(e)
		v.note(e)
	}
	if len(e.origins) < maxOrigins && !slices.Contains(e.origins, origin) {
		e.origins = append(e.origins, origin)
		v.note(e)
	}
	return e.text
}

// keep is called with mu held.
func (v *Vault) keep(key valueKey, part bool) *entry {
	same := sameKey{key.kind, normal(key.kind, key.value)}
	g := v.same[same]
	if g == nil {
		name := label(key.kind)
		v.last[name]++
		g = &group{number: v.given.nth(v.last[name])}
		v.same[same] = g
	}
	g.spellings++
	g.kept++
	e := &entry{valueKey: key, part: part, token: tokenKey{label(key.kind), g.number, g.spellings}}
	e.text = token{label: e.token.label, number: e.token.number, spell: e.token.spell}.String()
	v.values[key], v.tokens[e.token] = e, e
	v.oldest = append(v.oldest, e)
	if key.kind == Name && !part {
		v.names.add(key.value)
	}
	v.index.add(e)
	v.bytes += len(key.value)
	v.note(e)
	v.evict()
	return e
}

// evict evicts the oldest values while there are too many. It is called with mu held.
func (v *Vault) evict() {
	for len(v.oldest) > 1 && (len(v.oldest) > v.limit || v.bytes > maxBytes) {
		v.drop()
	}
}

// drop evicts the oldest value.
func (v *Vault) drop() {
	e := v.oldest[0]
	v.oldest[0] = nil
	v.oldest = v.oldest[1:]
	delete(v.tokens, e.token)
	v.bytes -= len(e.value)
	if v.values[e.valueKey] != e { // it has another token
		return
	}
	delete(v.values, e.valueKey)
	if e.kind == Name {
		v.names.remove(e.value)
	}
	v.index.remove(e)
	if e.adopted {
		return
	}
	same := sameKey{e.kind, normal(e.kind, e.value)}
	if g := v.same[same]; g != nil {
		if g.kept--; g.kept == 0 {
			delete(v.same, same)
		}
	}
}

// normal returns the normal form of the spellings of a value.
func normal(kind Kind, value string) string {
	switch kind {
	case Email, MAC:
		return strings.ToLower(value)
	case Name:
		return strings.ToLower(strings.Join(strings.Fields(value), " "))
	case Phone, Card, IBAN, SSN, NationalID:
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(" -.()+/", r) {
				return -1
			}
			return r
		}, strings.ToLower(value))
	}
	return value
}

// look returns the value of a token. The error is for an evicted one.
func (v *Vault) look(k token) (*entry, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.tokens[tokenKey{k.label, k.number, k.spell}]; e != nil {
		return e, nil
	}
	if at := v.given.place(k.number); k.spell == 1 && at > 0 && at <= v.last[k.label] {
		return nil, fmt.Errorf("%s: %w", k, ErrForgotten)
	}
	return nil, nil
}

// Names finds the full names in a text that have tokens already: a name that was the value of a key is also found in
// prose.
func (v *Vault) Names(text string) []Finding {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.names.find(text)
}

// NamesKnown returns how many full names have tokens.
func (v *Vault) NamesKnown() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.names.count
}

// May reports whether a value from these origins may be restored.
type May func(kind Kind, origins []string) bool

// Has reports whether a text may contain tokens.
func Has(text string) bool {
	for i := 0; i < len(text); i++ {
		if b := text[i]; b != '[' && b != '%' && b != '\\' {
			continue
		}
		if text[i] == '\\' && i+5 < len(text) && text[i+1] == 'u' || text[i] != '\\' {
			return true
		}
	}
	return false
}

// HasToken reports whether a text is a token of this vault.
func (v *Vault) HasToken(text string) bool {
	if text == "" || text[0] != '[' {
		return false
	}
	k, ok := readToken(text, 0)
	if !ok || k.end != len(text) {
		return false
	}
	e, err := v.look(k)
	return e != nil || err != nil
}

// Restore replaces the tokens in a text by their values, and returns those values. Tokens that may not be restored,
// and unknown ones, stay as they are.
func (v *Vault) Restore(text string, may May) (out string, restored []Known, err error) {
	r := restorer{vault: v, may: may}
	out = r.text(text, maxNested)
	return out, r.known, r.err
}

// RestoreJSON is Restore for valid JSON. Its strings keep their form. A string that is only the token of a number
// becomes that number.
func (v *Vault) RestoreJSON(raw json.RawMessage, may May) (out json.RawMessage, restored []Known, err error) {
	if !Has(string(raw)) || !json.Valid(raw) {
		return raw, nil, nil
	}
	return (&restorer{vault: v, may: may}).document(raw)
}

// document restores valid JSON; without a change it is returned unmodified.
func (r *restorer) document(raw json.RawMessage) (json.RawMessage, []Known, error) {
	text := r.json(string(raw), maxNested)
	if r.restored == 0 {
		return raw, nil, r.err
	}
	return json.RawMessage(text), r.known, r.err
}

type restorer struct {
	vault    *Vault
	may      May
	strict   func(label string) bool // set: which tokens must be known
	restored int
	known    []Known
	seen     map[Known]bool
	err      error
}

// note records a restored value once.
func (r *restorer) note(k Known) {
	if r.seen == nil {
		r.seen = map[Known]bool{}
	}
	if !r.seen[k] {
		r.seen[k] = true
		r.known = append(r.known, k)
	}
}

// find returns the token at i and its entry, nil if it is not restored.
func (r *restorer) find(text string, i int) (token, *entry) {
	k, ok := readToken(text, i)
	if !ok {
		return k, nil
	}
	e, err := r.vault.look(k)
	if err != nil && r.err == nil {
		r.err = err
	}
	if e == nil {
		return k, nil
	}
	r.vault.mu.Lock()
	origins := slices.Clone(e.origins)
	r.vault.mu.Unlock()
	if e.kind != Text {
		if !r.may(e.kind, origins) {
			return k, nil
		}
		r.note(Known{e.kind, e.value})
	}
	r.restored++
	return k, e
}

func (r *restorer) json(raw string, nested int) string {
	w := walker{raw: raw}
	w.leaf = func(text string, _ hint, isKey bool) string {
		if isKey {
			nested := 0
			return r.text(text, nested)
		}
		return r.text(text, nested)
	}
	w.number = func(string, hint) (string, bool) { return "", false }
	w.literal = func(text string) (string, bool) {
		if len(text) > longestToken || len(text) == 0 || text[0] != '[' {
			return "", false
		}
		if k, ok := readToken(text, 0); !ok || k.end != len(text) {
			return "", false
		}
		if e, _ := r.vault.look(mustToken(text)); e == nil || !e.number {
			return "", false
		}
		if _, e := r.find(text, 0); e != nil {
			return e.value, true
		}
		return "", false
	}
	return w.run()
}

func mustToken(text string) token {
	k, _ := readToken(text, 0)
	return k
}

func (r *restorer) text(text string, nested int) string {
	if !Has(text) {
		return text
	}
	if nested > 0 && IsDocument(text) {
		return r.json(text, nested-1)
	}
	var b strings.Builder
	at := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '[' && text[i] != '%' {
			continue
		}
		k, e := r.find(text, i)
		if e == nil {
			if start, end := r.unknownToken(text, i, k); end > 0 {
				b.WriteString(text[at : start-1])
				b.WriteString(text[start:end])
				at, i = end+1, end
			}
			continue
		}
		r.checkTouching(text, i, k, e)
		start, end, value := i, k.end, e.value
		if k.encoded {
			value = strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
		} else if e.number && start > at && isQuoted(text, start, end) {
			start, end = start-1, end+1
		}
		b.WriteString(text[at:start])
		b.WriteString(value)
		at, i = end, end-1
	}
	if at == 0 {
		return text
	}
	b.WriteString(text[at:])
	return b.String()
}

// isQuoted reports whether a part of a text has quotes around it.
func isQuoted(text string, start, end int) bool {
	return start > 0 && text[start-1] == '"' && end < len(text) && text[end] == '"'
}
