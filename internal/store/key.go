package store

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
)

// Key names a record: 1 to 8 parts, each of any bytes at all, together at most 1,024.
// Parts may come from outside: no two keys are ever taken for one.
type Key []string

const (
	maxParts = 8
	maxKey   = 1024
)

// simple is a part that is written as it is; whatever is not is encoded, with a mark that no simple one has.
var simple = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// encode makes a subject of the key, of letters, digits and "_-=.".
func (k Key) encode() (string, error) {
	size := 0
	parts := make([]string, len(k))
	for i, part := range k {
		size += len(part)
		if parts[i] = part; !simple.MatchString(part) {
			parts[i] = "=" + base64.RawURLEncoding.EncodeToString([]byte(part))
		}
	}
	if len(k) == 0 || len(k) > maxParts || size > maxKey {
		return "", fmt.Errorf("%w: a key of %d parts and %d bytes", ErrInvalid, len(k), size)
	}
	return strings.Join(parts, "."), nil
}

// decodeKey reads what encode wrote.
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
