package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sallyport/internal/envfile"
	"sallyport/internal/sanitize"
	store "sallyport/internal/secret"
)

// Sources are where the references in a file get their values from.
type Sources struct {
	// Getenv looks a variable up, as os.LookupEnv does; nil: none is set.
	Getenv func(name string) (string, bool)
	// File reads the file at an absolute path; nil: secret.File. No error of it may hold a value.
	File func(path string) (string, error)
	// EnvFile reads the file that env_file names, at an absolute path; nil: a file that
	// only its owner may read. No error of it may hold a value.
	EnvFile func(path string) ([]byte, error)
	// Keyring reads the keyring of the system; nil: secret.Get. No error of it may hold a value.
	Keyring func(name string) (string, error)
	// AllErrors reports all errors of a file, not only the first ten.
	AllErrors bool
}

// resolver looks up references, each at most once, and remembers their files.
type resolver struct {
	Sources
	dir   string
	files []string
	vars  Secrets // of the env_file
	known map[string]lookupResult
	// lenient: files and the keyring are not read, and values may be missing.
	lenient   bool
	noKeyring error // the error of an unusable keyring
	// owner is the ID of the upstream of the decoded entry, "" for all others; noted are the values of references by owner.
	owner  string
	values map[string]Secrets
}

// note remembers the value of a reference.
func (r *resolver) note(name, value string, bad *badReference) {
	if bad != nil || r.lenient {
		return
	}
	if r.values == nil {
		r.values = map[string]Secrets{}
	}
	if r.values[r.owner] == nil {
		r.values[r.owner] = Secrets{}
	}
	r.values[r.owner][name] = value
}

type lookupResult struct {
	value string
	bad   *badReference
}

func newResolver(s Sources, dir string) *resolver {
	if s.Getenv == nil {
		s.Getenv = func(string) (string, bool) { return "", false }
	}
	if s.File == nil {
		s.File = store.File
	}
	if s.EnvFile == nil {
		s.EnvFile = envfile.ReadPrivate
	}
	if s.Keyring == nil {
		s.Keyring = store.Get
	}
	return &resolver{Sources: s, dir: dir, known: map[string]lookupResult{}}
}

// lookupSecret returns the value of file:PATH or keyring:NAME; ours reports whether inside is one of them.
func (r *resolver) lookupSecret(inside string) (value string, bad *badReference, ours bool) {
	scheme, name, ok := strings.Cut(inside, ":")
	if !ok || scheme != "file" && scheme != "keyring" || strings.HasPrefix(name, "-") {
		return "", nil, false
	}
	if a, ok := r.known[inside]; ok && !r.lenient {
		return a.value, a.bad.clone(), true
	}
	switch {
	case strings.TrimSpace(name) != name || name == "" || strings.ContainsFunc(name, sanitize.Hidden):
		bad = &badReference{message: fmt.Sprintf(`after "${%s:" must come %s, and then "}"`, scheme, expectedName(scheme))}
	case scheme == "keyring" && strings.Contains(name, "/"):
		bad = &badReference{message: `a name in the keyring has no "/" here: what has one is a login, which is for no upstream to see`}
	case r.lenient:
		return "${" + inside + "}", nil, true
	case scheme == "file":
		value, bad = r.file(name)
	default:
		value, bad = r.keyring(name)
	}
	if bad != nil {
		value = "${" + inside + "}"
	}
	r.known[inside] = lookupResult{value, bad}
	return value, bad.clone(), true
}

// variable looks up a variable. The environment of the process has precedence over the env_file.
func (r *resolver) variable(name string) (string, bool) {
	if value, set := r.Getenv(name); set {
		return value, true
	}
	value, set := r.vars[name]
	return value, set
}

func expectedName(scheme string) string {
	if scheme == "file" {
		return "the path of a file"
	}
	return "a name in the keyring"
}

func (r *resolver) file(name string) (string, *badReference) {
	path := absolute(r.dir, name)
	if !slices.Contains(r.files, path) {
		r.files = append(r.files, path) // even if it cannot be read: it may be created later
	}
	value, err := r.File(path)
	if err == nil {
		return value, nil
	}
	why := err.Error()
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		why = pathErr.Err.Error() // without the path, which the reference says
	}
	return "", &badReference{missing: "file:" + name,
		message: fmt.Sprintf("the file %.80q cannot be used: %s", name, sanitize.Line(why, 200)),
		fix:     "check who may read it, and the path, which starts at the directory of this file"}
}

func (r *resolver) keyring(name string) (string, *badReference) {
	value, err := "", r.noKeyring // a failing keyring may be slow for every name
	if err == nil {
		value, err = r.Keyring(name)
	}
	switch {
	case err == nil:
		return value, nil
	case errors.Is(err, store.ErrNotFound):
		return "", &badReference{missing: "keyring:" + name, message: fmt.Sprintf("the keyring has no %.80q", name),
			fix: fmt.Sprintf("put it there with `sallyport auth set %.80s`", name)}
	case errors.Is(err, store.ErrNoKeyring):
		r.noKeyring = err
	}
	return "", &badReference{missing: "keyring:" + name, message: sanitize.Line(err.Error(), 200), fix: "use ${VARIABLE} or ${file:PATH} where there is no keyring"}
}

// Placeholder is the value of every reference without a value while a file is edited. It
// is valid wherever a reference is allowed, except where [isPlaceholder] is asked.
const Placeholder = "http://reference-without-value.invalid"

// isPlaceholder reports whether a value is not known because the file is only edited: its length and characters say nothing.
func isPlaceholder(value string) bool { return strings.Contains(value, Placeholder) }
