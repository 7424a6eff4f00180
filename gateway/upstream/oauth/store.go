package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/internal/secret"
)

// Dir returns the default directory of the tokens: auth/ in the state directory of
// sallyport, below XDG_STATE_HOME or ~/.local/state; "" if the environment has
// neither.
func Dir(env func(string) (string, bool)) string {
	if state, _ := env("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "sallyport", "auth")
	}
	if home, _ := env("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "sallyport", "auth")
	}
	return ""
}

const (
	storeAuto    = "auto"
	storeFile    = "file"
	storeKeyring = "keyring"
	storeShared  = "store"
	// recordVersion is the version of a record.
	recordVersion = 1
	// maxRecord bounds a file, in bytes.
	maxRecord = 256 << 10
)

// store persists the record of one upstream, in one file per ID and endpoint. The
// file exists also when the keyring has the secrets: other processes detect a login
// by its change.
type store struct {
	dir, id, url, principal, kind string
	page                          string                  // where the principal logs in
	key                           bool                    // whether records are API keys
	shared                        func() (Records, error) // of the logins that gateways share; nil: they are here
	log                           *slog.Logger
	now                           func() time.Time

	mu       sync.Mutex
	lastInfo fs.FileInfo // of the file that last was read from
	last     *record
}

// name depends on the endpoint, so that a token is never sent to another server
// after an edit of the settings.
func (s *store) name() string {
	sum := sha256.Sum256([]byte(s.url))
	name := s.id + "-" + hex.EncodeToString(sum[:8])
	if s.principal == "" {
		return name
	}
	who := sha256.Sum256([]byte(s.principal))
	return name + "-" + hex.EncodeToString(who[:16])
}

func (s *store) folder() (string, error) {
	dir := s.dir
	if dir == "" {
		dir = Dir(os.LookupEnv)
	}
	if dir == "" {
		return "", errors.New("find the folder of tokens: neither XDG_STATE_HOME nor HOME is set")
	}
	return dir, nil
}

func (s *store) path() (string, error) {
	dir, err := s.folder()
	return filepath.Join(dir, s.name()+".json"), err
}

// readCached is like read, but only does a stat while the file is unchanged, or uses a shared record of a moment ago.
func (s *store) readCached() (*record, error) {
	if s.shared != nil {
		return s.readShared(false)
	}
	path, err := s.path()
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	s.mu.Lock()
	if s.last != nil && sameFile(s.lastInfo, info) {
		r := *s.last
		s.mu.Unlock()
		return &r, nil
	}
	s.mu.Unlock()
	return s.read()
}

func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}

// read returns the record with its secrets, nil if there is none.
func (s *store) read() (*record, error) {
	if s.shared != nil {
		return s.readShared(true)
	}
	r, info, err := s.readFile()
	if err != nil || r == nil {
		return nil, err
	}
	if r.Store == storeKeyring {
		if r, err = s.fromKeyring(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastInfo, s.last = info, r
	own := *r
	return &own, nil
}

// readPublic returns the record without asking the keyring, nil if there is none.
func (s *store) readPublic() (*record, error) {
	if s.shared != nil {
		return s.readShared(false)
	}
	r, _, err := s.readFile()
	return r, err
}

// keyringItem returns the record's name in the keyring.
func (s *store) keyringItem() string { return "oauth/" + s.name() }

func (s *store) fromKeyring() (*record, error) {
	text, err := secret.Get(s.keyringItem())
	if errors.Is(err, secret.ErrNotFound) {
		return nil, s.lostError("its login is no longer in the keyring")
	}
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	return s.decode([]byte(text))
}

func (s *store) decode(data []byte) (*record, error) {
	r := &record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, s.lostError("the stored login is damaged")
	}
	if r.Version != recordVersion || r.Upstream != s.id || r.URL != s.url || r.Principal != s.principal || r.Key != s.key {
		return nil, s.lostError("the stored login is not for " + s.id)
	}
	return r, nil
}

// lostError is the error of an unusable stored login, which a new login replaces.
func (s *store) lostError(reason string) error {
	return &LoginError{Upstream: s.id, Reason: reason, Page: s.page}
}

func (s *store) readFile() (*record, fs.FileInfo, error) {
	path, err := s.path()
	if err != nil {
		return nil, nil, err
	}
	data, info, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read tokens: %w", err)
	}
	r, err := s.decode(data)
	return r, info, err
}

// readPrivate reads a file that only its owner can read, in a folder that only its owner can write.
func readPrivate(path string) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow|noWait, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, nil, fmt.Errorf("%s can be read by others (mode %04o): run `chmod 600 %s`, and log in again if somebody may have", path, info.Mode().Perm(), path)
	}
	if err := checkFolder(filepath.Dir(path)); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord))
	return data, info, err
}

func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is open to others (mode %04o): run `chmod 700 %s`", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// write stores a record, in the keyring first if it has the secrets: if it is
// interrupted, the stored record is complete, and no newer token is lost.
func (s *store) write(r *record) error {
	r.Version, r.Upstream, r.URL, r.Principal = recordVersion, s.id, s.url, s.principal
	if s.shared != nil {
		return s.writeShared(r)
	}
	if err := s.storeSecrets(r); err != nil {
		return fmt.Errorf("store tokens: %w", err)
	}
	public := *r
	if r.Store == storeKeyring {
		public.Secret = secrets{}
	}
	if err := s.writeFile(&public); err != nil {
		return fmt.Errorf("store tokens: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil // the next reader reads the file
	return nil
}

// storeSecrets selects file or keyring for the secrets, and writes them to the keyring in that case.
func (s *store) storeSecrets(r *record) error {
	if s.kind == storeFile {
		r.Store = storeFile
		return nil
	}
	r.Store = storeKeyring
	data, err := r.encode()
	if err != nil {
		return err
	}
	err = secret.Set(s.keyringItem(), string(data))
	if err != nil && s.kind != storeKeyring {
		r.Store = storeFile
		return nil
	}
	return err
}

func (s *store) writeFile(r *record) error {
	dir, err := s.makeFolder()
	if err != nil {
		return err
	}
	data, err := r.encode()
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, s.name()+".json"), data, 0o600)
}

func (s *store) makeFolder() (string, error) {
	dir, err := s.folder()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, checkFolder(dir)
}

// remove deletes the record from file and keyring, also an unreadable one.
func (s *store) remove() error {
	if s.shared != nil {
		return s.removeShared()
	}
	path, err := s.path()
	if err != nil {
		return err
	}
	r, _, err := s.readFile()
	if err != nil || r != nil && r.Store == storeKeyring {
		gone := secret.Delete(s.keyringItem())
		if r != nil && gone != nil && !errors.Is(gone, secret.ErrNotFound) {
			return fmt.Errorf("forget tokens: %w", gone)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget tokens: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
	return nil
}

// lock waits until no other process changes the record. The lock file is never
// removed: otherwise two processes could lock different files.
func (s *store) lock(ctx context.Context) (unlock func(), err error) {
	if s.shared != nil {
		return s.lockShared(ctx)
	}
	dir, err := s.makeFolder()
	if err != nil {
		return nil, fmt.Errorf("lock tokens: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, s.name()+".lock"), os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock tokens: %w", err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		locked, err := tryLock(f)
		if locked {
			return func() { _ = f.Close() }, nil
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock tokens: %w", err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock tokens: %w", context.Cause(ctx)), f.Close())
		case <-tick.C:
		}
	}
}
