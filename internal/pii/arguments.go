package pii

import (
	"encoding/json"
	"errors"
	"fmt"
)

var (
	// ErrUnknown is the error for a token that the vault never issued.
	ErrUnknown = errors.New("unknown token")
	// ErrGlued is the error for a short value next to other letters or digits: it could not be detected again.
	ErrGlued = errors.New("a short value must not touch letters, digits or another token")
)

// Arguments is [Vault.RestoreJSON] for what a program sends. A token in capitals of a known kind must be in the
// vault; an unknown one in double brackets, [[EMAIL_1]], is a text and loses the outer pair.
func (d *Detector) Arguments(v *Vault, raw json.RawMessage, may May) (out json.RawMessage, restored []Known, err error) {
	if !Has(string(raw)) || !json.Valid(raw) {
		return raw, nil, nil
	}
	return (&restorer{vault: v, may: may, strict: func(label string) bool { return d.labels[label] }}).document(raw)
}

// unknownToken handles a token at i that the vault does not know. If it is escaped as a text, it returns its position.
func (r *restorer) unknownToken(text string, i int, k token) (start, end int) {
	if r.strict == nil || k.end == 0 || !r.strict(k.label) {
		return 0, 0
	}
	written := text[i:k.end]
	if !k.encoded && written != k.String() || k.encoded && written[3:len(written)-3] != k.inner() {
		return 0, 0
	}
	if e, err := r.vault.look(k); e != nil || err != nil { // not for this tool, or forgotten
		return 0, 0
	}
	if i > 0 && text[i-1] == '[' && k.end < len(text) && text[k.end] == ']' {
		r.restored++
		return i, k.end
	}
	if r.err == nil {
		r.err = fmt.Errorf("%w %s", ErrUnknown, k)
	}
	return 0, 0
}

// inner is a token without its brackets.
func (k token) inner() string { t := k.String(); return t[1 : len(t)-1] }

// checkTouching records an error for a short value that would touch the text next to its token.
func (r *restorer) checkTouching(text string, i int, k token, e *entry) {
	if r.strict == nil || e.kind == Text || len(e.value) < leastWord || len(e.value) >= leastKnown || r.err != nil {
		return
	}
	if joins(text, i-1) || joins(text, k.end) || touches(text, i, k.end) {
		r.err = fmt.Errorf("%s: %w", k, ErrGlued)
	}
}

// touches reports whether the token from start to end touches another one.
func touches(text string, start, end int) bool {
	if start > 0 && (text[start-1] == ']' || start > 2 && hasPrefixFold(text[start-3:], "%5d")) {
		return true
	}
	if end == len(text) || text[end] != '[' && text[end] != '%' {
		return false
	}
	_, ok := readToken(text, end)
	return ok
}
