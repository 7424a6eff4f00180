package deps

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"sallyport/sandbox"
)

// Lock lists the exact files of a resolved request. Only files with these hashes are
// installed. It can be saved next to the settings and passed in Request.Lock.
type Lock struct {
	// Version is that of this format, 1.
	Version     int                 `json:"version"`
	Interpreter sandbox.Interpreter `json:"interpreter"`
	// Target is the interpreter that the files are for, as in "cp311-linux_x86_64"; "" for npm's packages.
	Target string `json:"target,omitempty"`
	// Index is the URL of the index, without a password; "" is PyPI or npm's registry.
	Index string `json:"index,omitempty"`
	// Requirements are the requested packages, sorted.
	Requirements []string `json:"requirements"`
	// Files are the resolved files, sorted by name (by path for npm).
	Files []File `json:"files"`
	// NPM is npm's own lock, for Node.
	NPM json.RawMessage `json:"npm,omitempty"`
}

// File is one file of an index: a wheel, a source distribution or an npm tarball.
type File struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Hash is "sha256:" or "sha512:" and hexadecimal digits.
	Hash string `json:"hash"`
	// Path is where npm puts the package: "node_modules/a/node_modules/b".
	Path string `json:"path,omitempty"`
	// Optional means that it may be missing, because it is for another system.
	Optional bool `json:"optional,omitempty"`
	// Source says that it is a source distribution.
	Source bool `json:"source,omitempty"`
}

var (
	pythonName    = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	pythonVersion = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.!+_-]{0,63}$`)
	npmPath       = regexp.MustCompile(`^node_modules/((@[a-z0-9][a-z0-9._~-]*/)?[A-Za-z0-9][A-Za-z0-9._~-]*)(/node_modules/(@[a-z0-9][a-z0-9._~-]*/)?[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)
	fileHash      = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`)
	identifier    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	targetName    = regexp.MustCompile(`^[a-z0-9._-]{1,80}$`)
)

// maxFiles is the maximum number of files in a lock.
const maxFiles = 2000

// ParseLock decodes and validates the output of [Lock.JSON]. Unknown fields are errors.
func ParseLock(data []byte) (Lock, error) {
	var lock Lock
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&lock); err != nil {
		return Lock{}, fmt.Errorf("read lock: %w", err)
	}
	if err := lock.validate(); err != nil {
		return Lock{}, fmt.Errorf("read lock: %w", err)
	}
	return lock, nil
}

// JSON encodes the lock for a file. Equal locks give equal bytes.
func (l Lock) JSON() []byte {
	if l.NPM != nil {
		decoder, npm := json.NewDecoder(bytes.NewReader(l.NPM)), any(nil)
		decoder.UseNumber()
		if decoder.Decode(&npm) == nil {
			l.NPM = bytes.TrimSpace(encode(npm, ""))
		}
	}
	return encode(l, "  ")
}

// encode encodes value as JSON without HTML escapes, so that "pandas>=2" stays readable.
func encode(value any, indent string) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	_ = encoder.Encode(value)
	return out.Bytes()
}

// layoutVersion is the version of unpacking: it changes when the same lock gives a different layer.
const layoutVersion = "1"

// digest returns the identifier of the lock's layer.
func (l Lock) digest(target string) string {
	sum := sha256.Sum256(slices.Concat([]byte("sallyport deps "+layoutVersion+"\n"+target+"\n"), l.JSON()))
	return hex.EncodeToString(sum[:16])
}

func (l Lock) validate() error {
	switch {
	case l.Version != 1:
		return fmt.Errorf("it is of version %d, not 1", l.Version)
	case l.Interpreter != sandbox.Python && l.Interpreter != sandbox.Node:
		return fmt.Errorf("invalid interpreter %.20q", l.Interpreter)
	case len(l.Files) == 0 || len(l.Files) > maxFiles:
		return fmt.Errorf("%w: it has %d files, not 1 to %d", ErrLimit, len(l.Files), maxFiles)
	case l.Target != "" && !targetName.MatchString(l.Target):
		return fmt.Errorf("invalid target %.80q", l.Target)
	}
	if _, err := parseRequirements(l.Interpreter, l.Requirements); err != nil {
		return err
	}
	for _, file := range l.Files {
		if err := l.check(file); err != nil {
			return err
		}
	}
	if l.Interpreter == sandbox.Node {
		if files, err := npmFiles(l.NPM); err != nil || !slices.Equal(files, l.Files) {
			return errors.Join(errors.New("its files are not those of npm's own lock in it"), err)
		}
	}
	return nil
}

func (l Lock) check(file File) error {
	if !fileHash.MatchString(file.Hash) {
		return fmt.Errorf("%w: %.80q has no sha256 or sha512", ErrUnsafe, file.Name)
	}
	if !pythonVersion.MatchString(file.Version) {
		return fmt.Errorf("%w: %.80q has the version %.80q", ErrUnsafe, file.Name, file.Version)
	}
	if l.Interpreter == sandbox.Node {
		if !npmPath.MatchString(file.Path) || len(file.Path) > 1000 {
			return fmt.Errorf("%w: invalid package path %.80q", ErrUnsafe, file.Path)
		}
		if top, _, _ := strings.Cut(strings.TrimPrefix(file.Path, "node_modules/"), "/"); isReservedModule(strings.ToLower(top)) {
			return fmt.Errorf("%w: a package called %s, which is what programs import here", ErrRefused, top)
		}
		return nil
	}
	module := strings.ReplaceAll(file.Name, "-", "_")
	if !pythonName.MatchString(file.Name) || isReservedModule(module) || isStdlib(module) {
		return fmt.Errorf("%w: a package called %.80q", ErrRefused, file.Name)
	}
	return nil
}

// packages returns the packages of the lock's files, each once.
func (l Lock) packages() []Package {
	var all []Package
	for _, file := range l.Files {
		all = append(all, Package{file.Name, file.Version})
	}
	slices.SortFunc(all, func(a, b Package) int {
		return strings.Compare(a.Name+"\x00"+a.Version, b.Name+"\x00"+b.Version)
	})
	return slices.Compact(all)
}

// stripCredentials returns a URL without user and password, "" if it is invalid.
func stripCredentials(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}
