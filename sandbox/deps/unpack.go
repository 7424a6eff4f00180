package deps

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/sanitize"
)

// fixedModTime is the modification time of all files in a layer, so that equal locks give equal layers.
var fixedModTime = time.Unix(946684800, 0)

// unpacker writes the files of packages into a layer. Packages are untrusted: it writes
// nothing outside root, only regular files and folders, no more than the limits, and
// never over existing files.
type unpacker struct {
	root    *os.Root
	bytes   int64 // that may still be written
	entries int
	folders map[string]bool
	notes   []string
}

func newUnpacker(root *os.Root, bytes int64, entries int) *unpacker {
	return &unpacker{root: root, bytes: bytes, entries: entries, folders: map[string]bool{".": true}}
}

// note adds a line to the notes on the layer.
func (u *unpacker) note(format string, args ...any) {
	if line := sanitize.Line(fmt.Sprintf(format, args...), 200); len(u.notes) < 50 && !slices.Contains(u.notes, line) {
		u.notes = append(u.notes, line)
	}
}

// checkName returns an error for unsafe file names.
func checkName(name string) error {
	bad := func(r rune) bool { return r == utf8.RuneError || r == '\\' || unicode.IsControl(r) }
	switch {
	case !fs.ValidPath(name) || name == ".":
		return fmt.Errorf("%w: the file name %.100q leads out of its folder, or nowhere", ErrUnsafe, name)
	case len(name) > 1000 || strings.ContainsFunc(name, bad):
		return fmt.Errorf("%w: the file name %.100q", ErrUnsafe, name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > 255 {
			return fmt.Errorf("%w: the file name %.100q is too long", ErrUnsafe, name)
		}
	}
	return nil
}

// errExists means that a file of that name exists already.
var errExists = errors.New("is there already")

// write writes one file, readable for all and writable for none. The name must have been
// checked. If the file exists, write returns errExists without reading from.
func (u *unpacker) write(name string, executable bool, from io.Reader) error {
	if err := u.makeFolder(path.Dir(name)); err != nil {
		return err
	}
	if u.entries--; u.entries < 0 {
		return fmt.Errorf("%w: the packages have too many files", ErrLimit)
	}
	file, err := u.root.OpenFile(filepath.FromSlash(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return errExists
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(file, io.LimitReader(from, u.bytes+1))
	if u.bytes -= n; u.bytes < 0 {
		err = errors.Join(err, fmt.Errorf("%w: the packages are larger than a layer may be", ErrLimit))
	}
	mode := fs.FileMode(0o444)
	if executable {
		mode = 0o555
	}
	return errors.Join(err, file.Chmod(mode), file.Close(), u.root.Chtimes(filepath.FromSlash(name), fixedModTime, fixedModTime))
}

func (u *unpacker) makeFolder(name string) error {
	if u.folders[name] {
		return nil
	}
	if err := u.makeFolder(path.Dir(name)); err != nil {
		return err
	}
	if u.entries--; u.entries < 0 {
		return fmt.Errorf("%w: the packages have too many folders", ErrLimit)
	}
	if err := u.root.Mkdir(filepath.FromSlash(name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := u.root.Lstat(filepath.FromSlash(name)); err != nil || !info.IsDir() {
		return fmt.Errorf("%w: %.100q is a file and a folder", ErrUnsafe, name)
	}
	if err := u.root.Chmod(filepath.FromSlash(name), 0o755); err != nil { // whatever the umask is
		return err
	}
	u.folders[name] = true
	return nil
}

// seal makes folders read-only, from the deepest up.
func (u *unpacker) seal() error {
	names := make([]string, 0, len(u.folders))
	for name := range u.folders {
		names = append(names, name)
	}
	slices.Sort(names)
	slices.Reverse(names)
	for _, name := range names {
		if err := errors.Join(u.root.Chtimes(filepath.FromSlash(name), fixedModTime, fixedModTime), u.root.Chmod(filepath.FromSlash(name), 0o555)); err != nil {
			return err
		}
	}
	return nil
}
