// Package skill stores skills: folders with a SKILL.md (the open Agent Skills format), code that programs import as
// skills.NAME, and tests. Its main type is [Store], a directory with a folder per owner, with earlier versions next
// to the current one. It reads and writes files and never runs them; names and files are untrusted, and all access
// goes through [os.Root].
package skill

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/workspace"
)

// Limits of one skill and of an owner.
const (
	// MaxBytes bounds the total size of a skill's files.
	MaxBytes = 256 << 10
	// MaxFiles bounds the files of a skill.
	MaxFiles = 64
	// MaxSkills bounds the skills of an owner.
	MaxSkills = 500
	// MaxVersions bounds the stored earlier versions of each.
	MaxVersions = 20
	// MaxDescription is the longest description, in bytes; the format says 1024 characters.
	MaxDescription = 1024
	maxName        = 64
)

// Errors of a store.
var (
	ErrNotFound = errors.New("there is no such skill")
	ErrFull     = fmt.Errorf("there are %d skills already", MaxSkills)
	ErrTooLarge = fmt.Errorf("a skill holds at most %d KiB in %d files", MaxBytes>>10, MaxFiles)
)

// The languages of skills.
const (
	Python     = "python"
	TypeScript = "typescript"
)

// Skill is one version of a skill.
type Skill struct {
	Front
	// Body is the Markdown below the front matter.
	Body string
	// Files are all other files by their slash-separated paths, including code and tests.
	Files map[string][]byte
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Name normalizes the name of a skill: weekly-report, weekly_report and "Weekly report" are one. The result is
// lower-case ASCII letters, digits and single hyphens, begins with a letter, and contains no word that would break an
// import in either language.
func Name(text string) (string, error) {
	name := strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(text[:min(len(text), 4*maxName)]))
	if len(text) > maxName || len(name) != len(text) || !namePattern.MatchString(name) || slices.Contains(reserved, name) {
		return "", fmt.Errorf("%q cannot name a skill: 1 to %d of a-z, 0-9 and -, a letter first, and no keyword", sanitize.Line(text, 40), maxName)
	}
	return name, nil
}

// reserved are keywords of Python, and device names of Windows.
var reserved = strings.Fields(`and as assert async await break class continue def del elif else except finally for from global if import in is
	lambda nonlocal not or pass raise return try while with yield none true false con prn aux nul
	com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9`)

// Module returns the module name of a skill: weekly-report is skills.weekly_report. Names have no underscores, so
// modules are distinct.
func Module(name string) string { return strings.ReplaceAll(name, "-", "_") }

// The special files of a skill.
const (
	frontFile = "SKILL.md"
	suffixPy  = "skill.py"
	suffixTS  = "skill.ts"
)

// CodeFile returns the code file of a language.
func CodeFile(language string) string {
	if language == TypeScript {
		return suffixTS
	}
	return suffixPy
}

// TestFile returns the test file of a language.
func TestFile(language string) string {
	if language == TypeScript {
		return "skill.test.ts"
	}
	return "skill_test.py"
}

// Code returns the skill's code, "" if it has instructions only.
func (s Skill) Code() string { return string(s.Files[CodeFile(s.Language)]) }

// Tests returns the skill's tests, "" if it has none.
func (s Skill) Tests() string { return string(s.Files[TestFile(s.Language)]) }

// Module returns its module name below "skills".
func (s Skill) Module() string { return Module(s.Name) }

// Check returns why a skill cannot be written.
func (s Skill) Check() error {
	if name, err := Name(s.Name); err != nil || name != s.Name {
		return cmp.Or(err, fmt.Errorf("%q is not the plain form of a skill's name", sanitize.Line(s.Name, 40)))
	}
	if s.Language != Python && s.Language != TypeScript {
		return fmt.Errorf("the language of a skill is %s or %s", Python, TypeScript)
	}
	if len(s.Description) > MaxDescription {
		return fmt.Errorf("a description has at most %d bytes", MaxDescription)
	}
	if err := CheckGroups(s.Groups); err != nil {
		return err
	}
	size := len(s.Format())
	for path, data := range s.Files {
		if err := workspace.Check(path); err != nil {
			return fmt.Errorf("file %q: %w", sanitize.Line(path, 80), err)
		}
		size += len(data)
	}
	if size > MaxBytes || len(s.Files) >= MaxFiles {
		return ErrTooLarge
	}
	return nil
}

// Digest returns a digest over every byte of a skill.
func (s Skill) Digest() string {
	h := sha256.New()
	add := func(name string, data []byte) { _, _ = fmt.Fprintf(h, "%d:%s%d:%s", len(name), name, len(data), data) }
	front := s.raw
	if front == nil {
		front = s.Format()
	}
	add(frontFile, front)
	for _, path := range s.paths() {
		add(path, s.Files[path])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (s Skill) paths() []string {
	paths := make([]string, 0, len(s.Files))
	for path := range s.Files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}
