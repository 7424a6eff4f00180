// Package ticket makes the requestState that a client gets for a pending call, and reads it when the client returns it. Its main
// type is [Key].
package ticket

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

const (
	// prefix marks a requestState as a ticket.
	prefix = "sallyport."
	// wrapped marks the requestState of an upstream that is a gateway too, which could be taken for a ticket of this one.
	wrapped = "upstream."
	// maxSize is the largest size of a ticket, in bytes.
	maxSize = 1 << 10
)

// Claims are the signed content of a ticket.
type Claims struct {
	ID string `json:"i"`
	// Bound is the digest of the request and its caller that must match.
	Bound   []byte `json:"b"`
	Expires int64  `json:"e"` // seconds since 1970
	// Execution is the program that waits, "" for none.
	Execution string `json:"x,omitempty"`
}

// Fits reports whether the ticket has not expired, and is for this request.
func (c Claims) Fits(bound []byte) bool {
	return hmac.Equal(c.Bound, bound) && time.Now().Unix() < c.Expires
}

// Is reports whether a requestState is a ticket, valid or not.
func Is(state string) bool { return strings.HasPrefix(state, prefix) }

// Wrap returns the requestState of an upstream as clients get it.
func Wrap(state string) string {
	if Is(state) || strings.HasPrefix(state, wrapped) {
		return wrapped + state
	}
	return state
}

// Unwrap returns the requestState of a client as the upstream made it.
func Unwrap(state string) string { return strings.TrimPrefix(state, wrapped) }

// Key signs tickets.
type Key []byte

// Sign returns a ticket.
func (k Key) Sign(c Claims) (string, error) {
	data, err := json.Marshal(c)
	body := base64.RawURLEncoding.EncodeToString(data)
	return prefix + body + "." + base64.RawURLEncoding.EncodeToString(k.mac(body)), err
}

func (k Key) mac(body string) []byte {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(prefix + body))
	return mac.Sum(nil)
}

// Read returns the content of a ticket, if its signature is valid.
func (k Key) Read(ticket string) (c Claims, ok bool) {
	body, sum, found := strings.Cut(strings.TrimPrefix(ticket, prefix), ".")
	if !found || len(ticket) > maxSize {
		return Claims{}, false
	}
	mac, err := base64.RawURLEncoding.Strict().DecodeString(sum)
	if err != nil || !hmac.Equal(mac, k.mac(body)) {
		return Claims{}, false
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || json.Unmarshal(data, &c) != nil {
		return Claims{}, false
	}
	return c, true
}
