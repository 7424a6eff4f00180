package skill

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/filelock"
)

// Shared skills are in folders that cannot be an owner's: workspace.Folder returns no other name with a plus and
// letters. Skills that wait for review are visible only to reviewers.
const (
	sharedFolder  = "+shared"
	pendingFolder = "+pending"
	pins          = ".approved"
	maxPins       = 256 << 10
)

// ErrChanged means that a shared skill differs from the approved version.
var ErrChanged = errors.New("it is not what was approved: its files have changed")

// Propose submits a skill for review, replacing a pending one of that name.
func (s *Store) Propose(author string, one Skill) (Skill, error) {
	one.Author = cmp.Or(author, "local")
	one.Files = maps.Clone(one.Files)
	return s.save(pendingFolder, one)
}

// Pending returns the names of the skills that wait for review.
func (s *Store) Pending() []string { return s.names(pendingFolder) }

// LoadPending returns a skill that waits for review.
func (s *Store) LoadPending(name string) (Skill, error) { return s.load(pendingFolder, name, 0) }

// SharedNames returns the names of the shared skills, including those with changed files.
func (s *Store) SharedNames() []string { return s.names(sharedFolder) }

// LoadShared returns a shared skill, the current version for 0. If it differs from the approved version, the error is
// ErrChanged and the skill is returned for review only.
func (s *Store) LoadShared(name string, version int) (Skill, error) {
	one, err := s.load(sharedFolder, name, version)
	if err != nil {
		return one, err
	}
	if !slices.Contains(s.approvedDigests(name), one.Digest()) {
		return one, ErrChanged
	}
	return one, nil
}

// SharedStamp is Stamp for the shared skills.
func (s *Store) SharedStamp() string {
	stamp := s.stamp(sharedFolder)
	defer s.shared.lock()()
	if info, err := os.Stat(filepath.Join(s.dir, sharedFolder, pins)); err == nil {
		stamp += info.ModTime().String()
	}
	return stamp
}

// Approve shares the pending skill of that name, or approves a shared one that was changed or added by hand. digest
// must be "" or a prefix of its digest. It returns the skill that is now shared.
func (s *Store) Approve(name, digest string) (Skill, error) {
	one, err := s.LoadPending(name)
	pending := err == nil
	if errors.Is(err, ErrNotFound) {
		one, err = s.load(sharedFolder, name, 0)
	}
	if err != nil {
		return Skill{}, err
	}
	if !strings.HasPrefix(one.Digest(), digest) {
		return Skill{}, errors.New("it has changed: review it again")
	}
	if pending {
		if one, err = s.save(sharedFolder, one); err != nil {
			return Skill{}, err
		}
	}
	if err := s.pin(name, one.Digest()); err != nil {
		return Skill{}, fmt.Errorf("write approval: %w", err)
	}
	if pending {
		return one, s.remove(pendingFolder, name)
	}
	return one, nil
}

// Reject removes the pending skill of that name.
func (s *Store) Reject(name string) error { return s.remove(pendingFolder, name) }

// RemoveShared removes a shared skill.
func (s *Store) RemoveShared(name string) error {
	return cmp.Or(s.remove(sharedFolder, name), s.pin(name, ""))
}

// approvedDigests returns the approved digests of a name, the newest last.
func (s *Store) approvedDigests(name string) []string {
	defer s.shared.lock()()
	return s.digestsHere(name)
}

// digestsHere reads the digests in the directory.
func (s *Store) digestsHere(name string) []string {
	for line := range strings.Lines(s.readPins()) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			return fields[1:]
		}
	}
	return nil
}

func (s *Store) readPins() string {
	root, err := s.openFolder(sharedFolder, false)
	if err != nil {
		return ""
	}
	defer func() { _ = root.Close() }()
	f, err := root.Open(pins)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	data, _ := io.ReadAll(io.LimitReader(f, maxPins))
	return string(data)
}

// pin adds an approved digest of a name; "" removes all of them.
func (s *Store) pin(name, digest string) error {
	if s.shared != nil {
		return s.shared.write(sharedFolder, pins, func() string { return s.pinned(name, digest) })
	}
	root, err := s.openFolder(sharedFolder, true)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	unlock, err := filelock.Dir(filepath.Join(s.dir, sharedFolder), lockTimeout)
	if err != nil {
		return err
	}
	defer unlock()
	temp := tempPrefix + rand.Text()
	f, err := root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(s.pinned(name, digest))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return cmp.Or(root.Rename(temp, pins), syncDir(root, "."))
}

// pinned returns the pins with a digest more, or without those of a name.
func (s *Store) pinned(name, digest string) string {
	known := s.digestsHere(name)
	var b strings.Builder
	for line := range strings.Lines(s.readPins()) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] != name {
			b.WriteString(line)
		}
	}
	if digest != "" {
		known = append(slices.DeleteFunc(known, func(d string) bool { return d == digest }), digest)
		fmt.Fprintln(&b, name, strings.Join(known[max(0, len(known)-MaxVersions-1):], " "))
	}
	return b.String()
}
