// Package seal encrypts records that are stored where others may read them. A [Key] seals a record for one place, with AES-256-GCM
// and a key of its own for each place, so that a sealed record cannot be moved to another place.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// Errors of [Key.Open], for use with errors.Is.
var (
	// ErrOtherKey: the record was sealed with another key.
	ErrOtherKey = errors.New("the record is sealed with another key")
	// ErrDamaged: the record was changed, is cut off, or was sealed for another place.
	ErrDamaged = errors.New("the sealed record is damaged")
	// ErrNewer: the record was sealed by a newer version.
	ErrNewer = errors.New("the record was sealed by a newer version")
)

const (
	// Size is the length of a key, in bytes.
	Size = 32
	// version is the first byte of a sealed record. The id of the key follows, then a nonce and the ciphertext.
	version    = 1
	idSize     = 8
	headerSize = 1 + idSize
)

// Key seals records, and opens those that it or an older key has sealed. A nil Key is absent. It is safe for concurrent use.
type Key struct{ all []secret } // the first one seals

// secret is one key with its id, which is not secret.
type secret struct{ id, key []byte }

// New returns a key of 32 random bytes, with older ones that still open records.
func New(key []byte, older ...[]byte) (*Key, error) {
	k := &Key{}
	for _, one := range append([][]byte{key}, older...) {
		if len(one) != Size {
			return nil, fmt.Errorf("a key has %d bytes, not %d", Size, len(one))
		}
		sum := sha256.Sum256(append([]byte("sallyport seal id\x00"), one...))
		k.all = append(k.all, secret{sum[:idSize], bytes.Clone(one)})
	}
	return k, nil
}

// ID identifies the key that seals. It is not secret.
func (k *Key) ID() string { return fmt.Sprintf("%x", k.all[0].id) }

// HasOlder reports whether there are older keys, which only open records.
func (k *Key) HasOlder() bool { return k != nil && len(k.all) > 1 }

// Sealed reports whether a record is sealed with the key that seals now, not with an older one.
func (k *Key) Sealed(record []byte) bool {
	return len(record) >= headerSize && record[0] == version && bytes.Equal(record[1:headerSize], k.all[0].id)
}

// String shows no key.
func (k *Key) String() string {
	if k == nil {
		return "no key"
	}
	return "key " + k.ID()
}

// Seal returns data sealed for a place, such as a bucket and the key of a record.
func (k *Key) Seal(data []byte, where ...string) []byte {
	one := k.all[0]
	header := append([]byte{version}, one.id...)
	return one.cipher(where).Seal(header, nil, data, header)
}

// Open returns the data of a sealed record. The errors are ErrOtherKey, ErrDamaged and ErrNewer.
func (k *Key) Open(sealed []byte, where ...string) ([]byte, error) {
	switch {
	case len(sealed) > 0 && sealed[0] > version:
		return nil, ErrNewer
	case len(sealed) < headerSize || sealed[0] != version:
		return nil, ErrDamaged
	}
	header := sealed[:headerSize]
	for _, one := range k.all {
		if !bytes.Equal(one.id, header[1:]) {
			continue
		}
		data, err := one.cipher(where).Open(nil, nil, sealed[headerSize:], header)
		if err != nil {
			return nil, ErrDamaged
		}
		return data, nil
	}
	return nil, ErrOtherKey
}

// cipher returns the cipher of a place. It makes a random nonce for each record, and puts it before the ciphertext.
func (s secret) cipher(where []string) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, s.key, nil, place(where), Size)
	if err != nil {
		panic(err) // the sizes are constant
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // as above
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // as above
	}
	return aead
}

// place encodes the parts of a place: distinct places are never confused.
func place(where []string) string {
	text := []byte("sallyport seal\x00")
	for _, part := range where {
		text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
		text = append(text, part...)
	}
	return string(text)
}
