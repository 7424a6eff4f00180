package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math/big"
	"regexp"
	"strings"
)

// A token is sp_ID_SECRETSUM, all but the underscores of letters and digits: an id of 8, by which it is found, a secret
// of 43 (256 bits), and a checksum of 6 over all before it. The checksum distinguishes a mistyped token from an unknown
// one, and lets secret scanners recognize tokens.

const (
	idLength, secretLength, sumLength = 8, 43, 6
	// Prefix is the prefix of every token.
	Prefix = "sp_"
)

// tokenPattern matches tokens.
var tokenPattern = regexp.MustCompile(`^sp_([0-9A-Za-z]{8})_[0-9A-Za-z]{43}[0-9A-Za-z]{6}$`)

// ErrMistyped reports a text with the prefix of a token but another form or a wrong checksum.
var ErrMistyped = errors.New("the token is mistyped or cut short")

// newSecret returns a random token and its id.
func newSecret() (id, token string) {
	id = base62(randomInt(8), idLength)
	body := Prefix + id + "_" + base62(randomInt(32), secretLength)
	return id, body + checksum(body)
}

func randomInt(bytes int) *big.Int {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // it never fails
	return new(big.Int).SetBytes(b)
}

// base62 returns the last length digits of a number in base 62.
func base62(n *big.Int, length int) string {
	text := n.Text(62)
	if len(text) > length {
		return text[len(text)-length:]
	}
	return strings.Repeat("0", length-len(text)) + text
}

func checksum(body string) string {
	return base62(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(body)))), sumLength)
}

// idOf returns the id of a token, "" for a token of another kind. The error is ErrMistyped.
func idOf(token string) (string, error) {
	if !strings.HasPrefix(token, Prefix) {
		return "", nil
	}
	found := tokenPattern.FindStringSubmatch(token)
	if found == nil || checksum(token[:len(token)-sumLength]) != token[len(token)-sumLength:] {
		return "", ErrMistyped
	}
	return found[1], nil
}

// digest returns the SHA-256 of a token in hex. It needs no salt, as a token has 256 random bits.
func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// randomText returns a random text of 52 characters that cannot be guessed.
func randomText() string { return rand.Text() + rand.Text() }
