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

	"sallyport/internal/atomicfile"
)

// keyFile is the file with the seed of all keys of a log, in hex. Only its owner can read it.
const keyFile = "key"

// keys are the keys of one log: a key pair that signs its head, and a secret key for digests.
type keys struct {
	private ed25519.PrivateKey
	digest  []byte
}

// loadKeys reads the keys of a log. With mayMake it creates them if there are none.
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
		return keys{}, fmt.Errorf("%w: %s is not a key", ErrDamaged, path)
	}
	return keys{ed25519.NewKeyFromSeed(derive(seed, "head")), derive(seed, "digest")}, nil
}

// chainLength is the length of the name of a chain.
const chainLength = 16

// Chain returns the name of the log in a directory among those of other gateways: the beginning of its public key. The
// error for a directory without a log is fs.ErrNotExist.
func Chain(dir string) (string, error) {
	k, err := loadKeys(dir, false)
	if err != nil {
		return "", err
	}
	return k.public()[:chainLength], nil
}

// makeKey creates the key file and returns its content. It is called with the log locked.
func makeKey(dir string) ([]byte, error) {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // it never fails
	text := []byte(hex.EncodeToString(seed) + "\n")
	return text, atomicfile.Replace(filepath.Join(dir, keyFile), text, 0o600)
}

func derive(seed []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, seed)
	mac.Write([]byte("sallyport audit " + purpose))
	return mac.Sum(nil)
}

// public returns the public key that verifies heads, in hex.
func (k keys) public() string {
	return hex.EncodeToString(k.private.Public().(ed25519.PublicKey))
}

// digestOf returns a keyed digest, which cannot be compared with guesses without the key.
func (k keys) digestOf(data []byte) string {
	mac := hmac.New(sha256.New, k.digest)
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
