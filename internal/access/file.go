package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/internal/checksumfile"
	"sallyport/internal/filelock"
	"sallyport/internal/tool"
)

const (
	// Folder is the folder of the tokens in the data directory. Backups exclude it, as a restore must not bring back revoked tokens.
	Folder = "access"
	// tokensFile has the tokens, usedFile when each was used last. Losing usedFile is harmless.
	tokensFile, usedFile = "tokens.json", "used.json"
	fileVersion          = 1
	// maxFile bounds a file, in bytes; maxTokens bounds the number of tokens.
	maxFile, maxTokens = 4 << 20, 1000
	lockTimeout        = 5 * time.Second
)

// Token describes a token. It does not hold the token itself.
type Token struct {
	ID     string       `json:"id"`
	Name   string       `json:"name"`
	Scopes []tool.Scope `json:"scopes"`
	// Created and Expires are in UTC; nil Expires means valid until it is revoked.
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
	// Rate replaces the rate limit of the settings; zero does not.
	Rate Rate `json:"rate,omitzero"`
	// Digest is the SHA-256 of the token.
	Digest string `json:"sha256"`
	// Used is when it was used last, to a minute; nil: never. It is stored in another file.
	Used *time.Time `json:"-"`
}

// Expired reports whether the token has expired at a time.
func (t Token) Expired(now time.Time) bool { return t.Expires != nil && !now.Before(*t.Expires) }

// tokenList is the body of tokensFile.
type tokenList struct {
	Tokens []Token `json:"tokens"`
}

// readTokens reads the tokens of a folder. Without a file there are none.
func readTokens(dir string) ([]Token, error) {
	var all tokenList
	err := readChecked(dir, tokensFile, &all)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &tool.Error{Kind: tool.Failed, Message: "the tokens in " + filepath.Join(dir, tokensFile) + " cannot be read: " + err.Error(),
			Hint: "all tokens are refused; remove the file, and create new ones with sallyport token create", Err: err}
	}
	return all.Tokens, nil
}

func readChecked(dir, name string, into any) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	data, _, err := checksumfile.Read(root, name, maxFile)
	if err != nil {
		return err
	}
	body, err := checksumfile.Decode(fileVersion, data)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// writeChecked replaces a file. It is synced to the disk when writeChecked returns.
func writeChecked(dir, name string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if data, err = checksumfile.Encode(fileVersion, data); err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, name), data, 0o600)
}

// editTokens changes the tokens of a folder, with the folder locked.
func editTokens(dir string, change func(all []Token) ([]Token, error)) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep tokens: %w", err)
	}
	unlock, err := filelock.Dir(dir, lockTimeout)
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
	if err := writeChecked(dir, tokensFile, tokenList{all}); err != nil {
		return fmt.Errorf("keep tokens: %w", err)
	}
	return nil
}
