package store

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
)

// Key names a record: 1 to 8 parts of arbitrary bytes, together at most 1,024. Parts may be untrusted: distinct keys
// are never confused.
type Key []string

const (
	maxParts = 8
	maxKey   = 1024
)

// plainPart matches a part that is stored literally; all others are encoded, with a mark that no simple part has.
var plainPart = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// encode returns the subject of the key, of letters, digits and "_-=.".
func (k Key) encode() (string, error) {
	size := 0
	parts := make([]string, len(k))
	for i, part := range k {
		size += len(part)
		if parts[i] = part; !plainPart.MatchString(part) {
			parts[i] = "=" + base64.RawURLEncoding.EncodeToString([]byte(part))
		}
	}
	if len(k) == 0 || len(k) > maxParts || size > maxKey {
		return "", fmt.Errorf("%w: a key of %d parts and %d bytes", ErrInvalid, len(k), size)
	}
	return strings.Join(parts, "."), nil
}

// decodeKey is the inverse of encode.
func decodeKey(subject string) (Key, error) {
	parts := strings.Split(subject, ".")
	for i, part := range parts {
		encoded, marked := strings.CutPrefix(part, "=")
		if !marked {
			continue
		}
		plain, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil {
			return nil, fmt.Errorf("%w: a key that nobody wrote: %.80q", ErrCorrupt, subject)
		}
		parts[i] = string(plain)
	}
	return parts, nil
}
