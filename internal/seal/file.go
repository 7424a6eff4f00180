package seal

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// maxFile bounds the file of a key, in bytes.
const maxFile = 64 << 10

// Generate returns the content of a file with a new key.
func Generate() []byte {
	key := make([]byte, Size)
	_, _ = rand.Read(key) // never fails
	return []byte(base64.StdEncoding.EncodeToString(key) + "\n")
}

// File reads a key: 32 bytes on one line, as base64 or hex. Further lines are older keys, which still open records. Lines with "#" are
// comments. The file must not be readable by all users: its group may read it, as it can where secrets are mounted.
func File(path string) (*Key, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	keys, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return New(keys[0], keys[1:]...)
}

func read(path string) ([]byte, error) {
	info, err := os.Stat(path) // opening a pipe would block
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o027 != 0 && runtime.GOOS != "windows":
		return nil, fmt.Errorf("others can read or change %s (mode %04o); run: chmod 600 %[1]s", path, info.Mode().Perm())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, maxFile))
}

var errFormat = errors.New("a key is 32 random bytes as base64 or hex, on one line; sallyport cluster init DIR writes one")

func parse(data []byte) (keys [][]byte, err error) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		key, ok := decode(text)
		if !ok {
			return nil, fmt.Errorf("line %d: %w", n, errFormat)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("there is no key: %w", errFormat)
	}
	return keys, nil
}

// decode decodes the text of a key.
func decode(text string) (key []byte, ok bool) {
	if key, err := hex.DecodeString(text); err == nil && len(key) == Size {
		return key, true
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	key, err := base64.RawStdEncoding.Strict().DecodeString(text)
	return key, err == nil && len(key) == Size
}
