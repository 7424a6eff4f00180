package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/checksumfile"
	"sallyport/internal/filelock"
	"sallyport/internal/tool"
)

const (
	// Folder is where tokens are kept, in the data directory. It is not for backups: what was revoked must not come back.
	Folder = "access"
	// tokensFile has the tokens, usedFile when each was used last, which is worth less.
	tokensFile, usedFile = "tokens.json", "used.json"
	fileVersion          = 1
	// maxFile is how large a file can be, in bytes; maxTokens is how many tokens there can be.
	maxFile, maxTokens = 4 << 20, 1000
	lockPatience       = 5 * time.Second
)

// Token is what is known of a token.
type Token struct {
	ID     string       `json:"id"`
	Name   string       `json:"name"`
	Scopes []tool.Scope `json:"scopes"`
	// Created and Expires are in UTC; without Expires it is good until it is revoked.
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
	// Rate is its own, instead of the settings'.
	Rate Rate `json:"rate,omitzero"`
	// Digest is the SHA-256 of the token.
	Digest string `json:"sha256"`
	// Used is when it was used last, to a minute; nil: never. It is kept apart.
	Used *time.Time `json:"-"`
}

// Expired reports whether its time is over.
func (t Token) Expired(now time.Time) bool { return t.Expires != nil && !now.Before(*t.Expires) }

// kept is the body of the file.
type kept struct {
	Tokens []Token `json:"tokens"`
}

// readTokens reads the file; none is no tokens.
func readTokens(dir string) ([]Token, error) {
	var all kept
	err := readSealed(dir, tokensFile, &all)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &tool.Error{Kind: tool.Failed, Message: "the tokens in " + filepath.Join(dir, tokensFile) + " cannot be read: " + err.Error(),
			Hint: "none of them is taken; remove the file, and make them anew with sallyport token create", Err: err}
	}
	return all.Tokens, nil
}

func readSealed(dir, name string, into any) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	data, _, err := checksumfile.Read(root, name, maxFile)
	if err != nil {
		return err
	}
	body, err := checksumfile.Open(fileVersion, data)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// writeSealed replaces a file, for good when it returns.
func writeSealed(dir, name string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if data, err = checksumfile.Seal(fileVersion, data); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	temp, err := checksumfile.Temp(root, func(w io.Writer) error {
		_, err := w.Write(data)
		if f, ok := w.(interface{ Sync() error }); ok && err == nil {
			err = f.Sync()
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return syncFolder(dir)
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = f.Sync() // not every file system can
	return f.Close()
}

// edit changes the tokens of a data directory, under its lock.
func edit(dataDir string, change func(all []Token) ([]Token, error)) error {
	dir := filepath.Join(dataDir, Folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep tokens: %w", err)
	}
	unlock, err := filelock.Dir(dir, lockPatience)
	if err != nil {
		return fmt.Errorf("keep tokens: %w", err)
	}
	defer unlock()
	all, err := readTokens(dir)
	if err != nil {
		return err
	}
	if all, err = change(all); err != nil {
		return err
	}
	if err := writeSealed(dir, tokensFile, kept{all}); err != nil {
		return fmt.Errorf("keep tokens: %w", err)
	}
	return nil
}
