package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"sallyport/internal/sanitize"
)

// Limits of paths, in bytes and levels.
const (
	maxName  = 255
	maxPath  = 2048
	maxDepth = 64
)

// Errors of a path.
var (
	errName     = errors.New("not a usable name")
	errLong     = errors.New("its name is too long")
	errDeep     = errors.New("too deep")
	errReserved = errors.New("a reserved name")
)

// Check validates the path of a file in a workspace: it must be relative, slash-separated and clean, of visible UTF-8
// names. A backslash is rejected, since other systems treat it as a slash.
func Check(path string) error {
	switch {
	case len(path) > maxPath:
		return errLong
	case strings.Count(path, "/") >= maxDepth:
		return errDeep
	case !utf8.ValidString(path):
		return errName
	case strings.HasPrefix(path, tempPrefix):
		return errReserved
	}
	for name := range strings.SplitSeq(path, "/") {
		if err := checkName(name); err != nil {
			return err
		}
	}
	return nil
}

func checkName(name string) error {
	if len(name) > maxName {
		return errLong
	}
	if name == "" || name == "." || name == ".." || strings.Contains(name, `\`) || strings.ContainsAny(name, "\u2028\u2029") || strings.ContainsFunc(name, sanitize.Hidden) {
		return errName
	}
	return nil
}

var (
	namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	// device matches names that are devices on Windows.
	device = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)
)

// Name validates the name of a workspace.
func Name(name string) error {
	if !namePattern.MatchString(name) || device.MatchString(name) {
		return fmt.Errorf("%.60q is not a workspace name: use 1 to 64 of a-z, 0-9, _ and -, a letter or digit first", name)
	}
	return nil
}

// Folder returns a folder name for a principal, whose name may be any text: the name itself if it is valid, else a
// digest. Owners never share a folder.
func Folder(owner string) string {
	if owner != "" && Name(owner) == nil {
		return owner
	}
	sum := sha256.Sum256([]byte(owner))
	return "+" + hex.EncodeToString(sum[:16])
}
