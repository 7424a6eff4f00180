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

	"sallyport/internal/atomicfile"
)

// headFile is the file with the published head.
const headFile = "head"

// Head identifies the end of a log: the number and the hash of its last record, which covers all records before it.
// Stored elsewhere, it later proves that none of them was changed.
type Head struct {
	Seq  uint64    `json:"seq"`
	Hash string    `json:"hash"`
	Time time.Time `json:"time"`
	// Key is the public key (Ed25519, hex) that checks Signature, which is of the other members.
	Key       string `json:"key,omitempty"`
	Signature string `json:"signature,omitempty"`
}

func (h Head) signedText() []byte {
	return fmt.Appendf(nil, "sallyport audit head %d %s %s", h.Seq, h.Hash, h.Time.UTC().Format(time.RFC3339Nano))
}

func (k keys) sign(h Head) Head {
	h.Key = k.public()
	h.Signature = hex.EncodeToString(ed25519.Sign(k.private, h.signedText()))
	return h
}

// check reports whether the head has a valid signature for a public key.
func (h Head) check(public string) bool {
	key, err := hex.DecodeString(public)
	signature, err2 := hex.DecodeString(h.Signature)
	return err == nil && err2 == nil && len(key) == ed25519.PublicKeySize && h.Key == public && ed25519.Verify(key, h.signedText(), signature)
}

// String returns the head as SEQ:HASH, a form of ParseHead.
func (h Head) String() string { return strconv.FormatUint(h.Seq, 10) + ":" + h.Hash }

// ParseHead parses a head in JSON or as SEQ:HASH.
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

// readHead returns the published head of a directory.
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
	return atomicfile.Replace(filepath.Join(dir, headFile), append(text, '\n'), 0o600)
}
