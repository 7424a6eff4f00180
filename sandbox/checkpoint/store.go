package checkpoint

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/internal/diskusage"
)

const (
	recordName = "record.json"
	// maxStored bounds the images of a store together, in bytes. The oldest ones are removed.
	maxStored = 4 << 30
)

// Record describes a program's checkpoint, or why it has none.
type Record struct {
	// Owner identifies the program. It has one checkpoint: a new one replaces the last.
	Owner string `json:"owner"`
	// Refused says why there is no image; "" if there is one.
	Refused string `json:"refused,omitempty"`
	// Inputs are the files of this machine that the program had looked at, with their states.
	Inputs map[string]string `json:"inputs,omitempty"`
}

// Store has the checkpoints of third-party programs, by the digest of all that they depend on. Their images contain all of a
// program's memory, also its secrets, so only this user can read the folder. Several processes may use one store.
type Store struct{ dir string }

// Open opens a store in a directory, which it makes.
func Open(dir string) (*Store, error) {
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700)); err != nil {
		return nil, fmt.Errorf("open checkpoints: %w", err)
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && strings.HasPrefix(entry.Name(), partialPrefix) && time.Since(info.ModTime()) > keepPartial {
			_ = os.RemoveAll(filepath.Join(dir, entry.Name()))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open checkpoints: %w", err)
	}
	return &Store{dir: dir}, nil
}

// Existing returns a store to list and prune, in a directory that need not exist.
func Existing(dir string) *Store { return &Store{dir: dir} }

var validDigest = regexp.MustCompile(`^[0-9a-f]{8,64}$`)

// Find returns the image of a digest, or why there is none; both are "" if the digest is new. An image with changed inputs is
// removed.
func (s *Store) Find(digest string) (image, refused string) {
	path := filepath.Join(s.dir, digest)
	record, err := readRecord(path)
	switch {
	case err != nil || !validDigest.MatchString(digest):
		return "", ""
	case record.changed():
		s.Remove(digest)
		return "", ""
	case record.Refused != "":
		return "", record.Refused
	case Verify(path) != nil:
		s.Remove(digest)
		return "", ""
	}
	return path, ""
}

// Begin makes a folder for an unfinished image, with a folder for a trace in it.
func (s *Store) Begin() (half, trace string, err error) {
	half = Partial(s.dir, strings.ToLower(rand.Text()[:12]))
	trace = filepath.Join(half, "trace") + "/"
	if err := os.MkdirAll(trace, 0o700); err != nil {
		return "", "", fmt.Errorf("begin checkpoint: %w", err)
	}
	return half, trace, nil
}

// Commit keeps a finished image without its trace, and removes others of its owner.
func (s *Store) Commit(digest, half string, record Record) error {
	err := os.RemoveAll(filepath.Join(half, "trace"))
	if err == nil {
		err = writeRecord(half, record)
	}
	if err == nil {
		err = Commit(half, filepath.Join(s.dir, digest))
	}
	if err != nil {
		return fmt.Errorf("keep checkpoint: %w", err)
	}
	s.removeOthers(digest, record.Owner)
	return nil
}

// Refuse keeps the reason why a program has no checkpoint.
func (s *Store) Refuse(digest string, record Record) error {
	path := filepath.Join(s.dir, digest)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("keep reason: %w", err)
	}
	s.removeOthers(digest, record.Owner)
	return writeRecord(path, record)
}

// Remove removes what is known about a digest.
func (s *Store) Remove(digest string) { _ = os.RemoveAll(filepath.Join(s.dir, digest)) }

// removeOthers removes the other records of an owner, and the oldest images if all together are too large.
func (s *Store) removeOthers(digest, owner string) {
	all, _ := s.List(context.Background())
	var total int64
	for _, one := range all {
		total += one.Bytes
		if one.Digest != digest && (one.Owner == owner || total > maxStored) {
			s.Remove(one.Digest)
		}
	}
}

// Stored is a checkpoint on disk.
type Stored struct {
	Digest, Owner string
	Bytes         int64
	Used          time.Time
}

// List returns all checkpoints, the last used one first. What cannot be read has no owner.
func (s *Store) List(ctx context.Context) (all []Stored, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(s.dir, entry.Name())
		record, recordErr := readRecord(path)
		if recordErr != nil && strings.HasPrefix(entry.Name(), partialPrefix) {
			continue
		}
		one := Stored{Digest: entry.Name(), Owner: record.Owner}
		for _, name := range []string{recordName, manifestName} {
			if info, err := os.Lstat(filepath.Join(path, name)); err == nil && info.ModTime().After(one.Used) {
				one.Used = info.ModTime()
			}
		}
		if one.Bytes, err = diskusage.Tree(ctx, path); err != nil {
			return all, err
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Stored) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Digest, b.Digest)) })
	return all, nil
}

// Prune removes the checkpoints that were not used since a time, and returns them. With dryRun it removes nothing.
func (s *Store) Prune(ctx context.Context, before time.Time, dryRun bool) (removed []Stored, err error) {
	all, err := s.List(ctx)
	for _, one := range all {
		if !one.Used.Before(before) {
			continue
		}
		if !dryRun {
			if err := os.RemoveAll(filepath.Join(s.dir, one.Digest)); err != nil {
				return removed, fmt.Errorf("remove checkpoint: %w", err)
			}
		}
		removed = append(removed, one)
	}
	return removed, err
}

func readRecord(path string) (r Record, err error) {
	data, err := os.ReadFile(filepath.Join(path, recordName))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

func writeRecord(path string, r Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(path, recordName), data, 0o600)
}

func (r Record) changed() bool {
	for path, state := range r.Inputs {
		if State(path, !strings.HasPrefix(state, folder)) != state {
			return true
		}
	}
	return false
}

// folder is the state of a folder of which only the existence counts.
const folder = "folder"

// State describes a file of this machine, its content by size and time only: it changes when the file is written, replaced or
// removed. opened is false for a folder that was not listed.
func State(path string, opened bool) string {
	info, err := os.Lstat(path)
	if err != nil {
		return "none"
	}
	text := describe(info, opened)
	if info.Mode()&fs.ModeSymlink != 0 {
		target, _ := os.Readlink(path)
		text += " " + target
		if info, err = os.Stat(path); err == nil {
			text += " " + describe(info, true)
		}
	}
	return text
}

func describe(info fs.FileInfo, opened bool) string {
	if info.IsDir() && !opened {
		return folder
	}
	return fmt.Sprint(info.Mode(), " ", info.Size(), " ", info.ModTime().UnixNano())
}
