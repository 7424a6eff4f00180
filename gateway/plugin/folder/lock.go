package folder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/internal/filelock"
	"sallyport/internal/lockfile"
	"sallyport/internal/sanitize"
)

// The lock file has the digests of what a person has reviewed, a line per file:
//
//	shop file "main.py" 9f86d081884c7d659a2feaa0c55ad015
//	shop guards "shop.*"
//	shop offer 534f35dee69c7dd5baf150a5bc7e8a9f
//
// The lines with guards say what is refused while the plugin does not run, see [Manifest.Guards].
const (
	// LockName is the name of the lock file in the folder of the plugins.
	LockName   = "plugins.lock"
	lockHeader = `# plugins.lock: the digests of the plugins that a person has reviewed.
# Written by sallyport; commit it. To accept a change: sallyport plugin review, then approve.
version 1
`
	maxLock     = 8 << 20
	lockTimeout = 10 * time.Second
)

var digestText = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Reviewed is what a person has reviewed of a plugin.
type Reviewed struct {
	// Files are digests by path.
	Files map[string]string
	// Guards are as [Manifest.Guards] returns them.
	Guards []string
	// Offer is the digest of what it said about its functions, "" if it was never started.
	Offer string
}

// Lock is the content of the lock file, by plugin.
type Lock map[string]Reviewed

// ReadLock reads the lock file of a folder of plugins; it may be missing.
func ReadLock(dir string) (Lock, error) {
	l := Lock{}
	if err := lockfile.Read(filepath.Join(dir, LockName), maxLock, l.parseLine); err != nil {
		return nil, err
	}
	return l, nil
}

func (l Lock) parseLine(text string) error {
	name, rest, _ := strings.Cut(text, " ")
	what, rest, _ := strings.Cut(rest, " ")
	r := l[name]
	switch {
	case !ValidName(name):
		return fmt.Errorf("%q is not the name of a plugin", sanitize.Line(name, 40))
	case what == "offer" && digestText.MatchString(rest) && r.Offer == "":
		r.Offer = rest
	case what == "guards":
		pattern, err := unquote(rest)
		if err != nil {
			return err
		}
		r.Guards = append(r.Guards, pattern)
	case what == "file" && strings.Contains(rest, `" `):
		at := strings.LastIndexByte(rest, ' ')
		file, err := unquote(rest[:at])
		if err != nil || !digestText.MatchString(rest[at+1:]) || r.Files[file] != "" {
			return fmt.Errorf("not the digest of a file, or the second one: %q", sanitize.Line(text, 80))
		}
		if r.Files == nil {
			r.Files = map[string]string{}
		}
		r.Files[file] = rest[at+1:]
	default:
		return fmt.Errorf("%q says nothing of a plugin", sanitize.Line(text, 80))
	}
	l[name] = r
	return nil
}

func unquote(text string) (s string, err error) {
	if err := json.Unmarshal([]byte(text), &s); err != nil || s == "" {
		return "", fmt.Errorf("a name must be in double quotes: %q", sanitize.Line(text, 80))
	}
	return s, nil
}

// format encodes the lock; equal ones have equal bytes.
func (l Lock) format() []byte {
	var b bytes.Buffer
	b.WriteString(lockHeader)
	for _, name := range slices.Sorted(maps.Keys(l)) {
		r := l[name]
		for _, file := range slices.Sorted(maps.Keys(r.Files)) {
			fmt.Fprintf(&b, "%s file %s %s\n", name, quote(file), r.Files[file])
		}
		for _, pattern := range r.Guards {
			fmt.Fprintf(&b, "%s guards %s\n", name, quote(pattern))
		}
		if r.Offer != "" {
			fmt.Fprintf(&b, "%s offer %s\n", name, r.Offer)
		}
	}
	return b.Bytes()
}

func quote(s string) string {
	data, _ := json.Marshal(s) // a string always encodes
	return string(data)
}

// Approve writes the digests of a plugin to the lock file of its folder's parent. offer is the digest of what it says about
// its functions.
func Approve(p Plugin, offer string) error {
	r := Reviewed{Files: map[string]string{}, Guards: p.Guards(), Offer: offer}
	for name, data := range p.Content {
		r.Files[name] = Digest(data)
	}
	return update(filepath.Dir(p.Dir), func(l Lock) { l[p.Name] = r })
}

// Forget removes a plugin from the lock file of dir.
func Forget(dir, name string) error {
	return update(dir, func(l Lock) { delete(l, name) })
}

func update(dir string, change func(Lock)) error {
	unlock, err := filelock.Dir(dir, lockTimeout)
	if err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	defer unlock()
	l, err := ReadLock(dir)
	if err != nil {
		return err
	}
	change(l)
	if err := atomicfile.Replace(filepath.Join(dir, LockName), l.format(), 0o644); err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	return nil
}
