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
// of 43 (256 bits), and a checksum of 6 over all before it. So a typing mistake is distinguished from a wrong token, and
// scanners for secrets know one when they see it.

const (
	idLength, secretLength, sumLength = 8, 43, 6
	// Prefix is how every token begins.
	Prefix = "sp_"
)

// shape is what a token looks like.
var shape = regexp.MustCompile(`^sp_([0-9A-Za-z]{8})_[0-9A-Za-z]{43}[0-9A-Za-z]{6}$`)

// ErrMistyped says that a text begins as a token does and is none.
var ErrMistyped = errors.New("the token is mistyped or cut short")

// newSecret makes a token with an id of its own.
func newSecret() (id, token string) {
	id = sixtyTwo(random(8), idLength)
	body := Prefix + id + "_" + sixtyTwo(random(32), secretLength)
	return id, body + checksum(body)
}

func random(bytes int) *big.Int {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // it never fails
	return new(big.Int).SetBytes(b)
}

// sixtyTwo writes a number with letters and digits, the last of them, as many as are asked for.
func sixtyTwo(n *big.Int, length int) string {
	text := n.Text(62)
	if len(text) > length {
		return text[len(text)-length:]
	}
	return strings.Repeat("0", length-len(text)) + text
}

func checksum(body string) string {
	return sixtyTwo(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(body)))), sumLength)
}

// idOf returns the id of a token, "" for another kind of token.
func idOf(token string) (string, error) {
	if !strings.HasPrefix(token, Prefix) {
		return "", nil
	}
	found := shape.FindStringSubmatch(token)
	if found == nil || checksum(token[:len(token)-sumLength]) != token[len(token)-sumLength:] {
		return "", ErrMistyped
	}
	return found[1], nil
}

// digest is what is kept of a token. It has 256 random bits, so it cannot be guessed.
func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// randomName is a random text that cannot be guessed.
func randomName() string { return rand.Text() + rand.Text() }
