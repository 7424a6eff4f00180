// Package taskid makes the IDs of tasks that clients see. An ID has what is needed to ask the upstream about its task, encrypted
// and bound to a caller: no other caller can use or read it, or make one. Nothing is stored, so an ID outlives the gateway.
package taskid

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"sallyport/internal/tool"
)

// maxWire is the maximum length of an upstream's own ID, and maxID that of an ID, in bytes.
const (
	maxWire = 512
	maxID   = 2 << 10
)

// Task is a task of an upstream.
type Task struct {
	// Tool is the tool that was called; the call became the task.
	Tool tool.ID
	// Wire is the upstream's own ID.
	Wire string
}

// content is a task as it is encrypted.
type content struct {
	Tool tool.ID `json:"t"`
	Wire []byte  `json:"w"`
}

// Sealer makes IDs and reads them. It is safe for concurrent use.
type Sealer struct{ aead cipher.AEAD }

// New returns a sealer with a key; without one, its IDs are valid in this process only.
func New(key []byte) *Sealer {
	if len(key) == 0 {
		key = []byte(rand.Text())
	}
	derived, _ := hkdf.Key(sha256.New, key, nil, "sallyport tasks", 32) // cannot fail: the length is that of a digest
	block, _ := aes.NewCipher(derived)                                  // cannot fail with this length
	aead, _ := cipher.NewGCMWithRandomNonce(block)                      // cannot fail with AES
	return &Sealer{aead}
}

// Seal returns the ID of a task for a caller. ok is false if the upstream's own ID is missing or too long.
func (s *Sealer) Seal(t Task, caller []byte) (id string, ok bool) {
	if t.Wire == "" || len(t.Wire) > maxWire {
		return "", false
	}
	plain, err := json.Marshal(content{t.Tool, []byte(t.Wire)})
	if err != nil {
		return "", false
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, caller)), true
}

// Open returns the task of an ID. ok is false for one that was not made for the caller.
func (s *Sealer) Open(id string, caller []byte) (t Task, ok bool) {
	if len(id) > maxID {
		return Task{}, false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil {
		return Task{}, false
	}
	plain, err := s.aead.Open(nil, nil, sealed, caller)
	var c content
	if err != nil || json.Unmarshal(plain, &c) != nil {
		return Task{}, false
	}
	return Task{c.Tool, string(c.Wire)}, true
}
