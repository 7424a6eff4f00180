package audit

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// keyFile holds the seed of all keys of a log, in hex. Only its owner can read it.
const keyFile = "key"

// keys are those of one log: one pair signs its head, a secret digests what could be guessed.
type keys struct {
	private ed25519.PrivateKey
	digest  []byte
}

// loadKeys reads the keys of a log, and makes them if made is set and there are none yet.
func loadKeys(dir string, mayMake bool) (keys, error) {
	path := filepath.Join(dir, keyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && mayMake {
		text, err = makeKey(dir)
	}
	if err != nil {
		return keys{}, err
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return keys{}, fmt.Errorf("%w: %s is no key", ErrDamaged, path)
	}
	return keys{ed25519.NewKeyFromSeed(derive(seed, "head")), derive(seed, "digest")}, nil
}

// makeKey is called with the lock held.
func makeKey(dir string) ([]byte, error) {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // it never fails
	text := []byte(hex.EncodeToString(seed) + "\n")
	return text, replace(filepath.Join(dir, keyFile), text)
}

func derive(seed []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, seed)
	mac.Write([]byte("sallyport audit " + purpose))
	return mac.Sum(nil)
}

// public is the key that heads are checked with, in hex.
func (k keys) public() string {
	return hex.EncodeToString(k.private.Public().(ed25519.PublicKey))
}

// digestOf is a keyed digest: without the key its input cannot be guessed by trial.
func (k keys) digestOf(data []byte) string {
	mac := hmac.New(sha256.New, k.digest)
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// replace writes a file that only its owner can read, as a whole and synced. One at a time may do it for a path.
func replace(path string, data []byte) error {
	temporary := path + ".tmp"
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}
