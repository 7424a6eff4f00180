package audit

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// headFile holds the newest head that was published here.
const headFile = "head"

// Head says how far a log goes: that the record Seq has this hash, and so which records all before it are.
// Kept somewhere else, it proves later that none of them was touched.
type Head struct {
	Seq  uint64    `json:"seq"`
	Hash string    `json:"hash"`
	Time time.Time `json:"time"`
	// Key is the public key (Ed25519, hex) that checks Signature, which is of the other members.
	Key       string `json:"key,omitempty"`
	Signature string `json:"signature,omitempty"`
}

func (h Head) signed() []byte {
	return fmt.Appendf(nil, "sallyport audit head %d %s %s", h.Seq, h.Hash, h.Time.UTC().Format(time.RFC3339Nano))
}

func (k keys) sign(h Head) Head {
	h.Key = k.public()
	h.Signature = hex.EncodeToString(ed25519.Sign(k.private, h.signed()))
	return h
}

// check reports whether the head was signed with the private key of a public one.
func (h Head) check(public string) bool {
	key, err := hex.DecodeString(public)
	signature, err2 := hex.DecodeString(h.Signature)
	return err == nil && err2 == nil && len(key) == ed25519.PublicKeySize && h.Key == public && ed25519.Verify(key, h.signed(), signature)
}

// String is a head in one word, as ParseHead reads it: SEQ:HASH.
func (h Head) String() string { return strconv.FormatUint(h.Seq, 10) + ":" + h.Hash }

// ParseHead reads a head that was kept: as JSON, or as SEQ:HASH.
func ParseHead(text string) (Head, error) {
	text = strings.TrimSpace(text)
	var h Head
	if strings.HasPrefix(text, "{") {
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			return Head{}, fmt.Errorf("read head: %w", err)
		}
	} else {
		seq, hash, _ := strings.Cut(text, ":")
		h.Seq, _ = strconv.ParseUint(seq, 10, 64)
		h.Hash = strings.ToLower(hash)
	}
	if h.Seq == 0 || !isHash(h.Hash) {
		return Head{}, errors.New("read head: it is neither SEQ:HASH nor what log head --json prints")
	}
	return h, nil
}

// readHead returns the head that was published in a directory.
func readHead(dir string) (Head, error) {
	text, err := os.ReadFile(filepath.Join(dir, headFile))
	if err != nil {
		return Head{}, err
	}
	return ParseHead(string(text))
}

func writeHead(dir string, h Head) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return replace(filepath.Join(dir, headFile), append(text, '\n'))
}
