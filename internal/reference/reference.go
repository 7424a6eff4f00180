// Package reference fills in the references in texts of settings: variables, files, the keyring of the system, and secret
// managers. Its main type is [Resolver].
package reference

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/envfile"
	"sallyport/internal/sanitize"
	store "sallyport/internal/secret"
	"sallyport/internal/secretstore"
	"sallyport/internal/secretvalue"
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
	// Managers reads secret managers; nil: a store of its own.
	Managers secretstore.Reader
}

// Resolver looks up references, each at most once, and remembers their files.
type Resolver struct {
	Sources
	// Files are those that references name.
	Files []string
	// Vars are the variables of the env_file.
	Vars secretvalue.Map
	// Lenient: files, the keyring and secret managers are not read, and values may be missing.
	Lenient bool
	// Local: secret managers are not read, as the texts are their own settings.
	Local bool
	// Owner is the ID of the upstream of the decoded entry, "" for all others; Values are the values of references by owner.
	Owner  string
	Values map[string]secretvalue.Map

	dir       string
	known     map[string]lookupResult
	noKeyring error // the error of an unusable keyring
	offset    int   // of the reference that is resolved
	managed   []Use
}

// Use is a reference to a secret manager in a text.
type Use struct {
	Offset int
	// Name is the reference without "${" and "}".
	Name string
	// Fault is nil if it has a value.
	Fault *Fault
}

// TakeManaged returns the references to secret managers since the last call.
func (r *Resolver) TakeManaged() []Use {
	all := r.managed
	r.managed = nil
	return all
}

// Absolute makes a path absolute that starts at a directory.
func Absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// Note remembers a value that is secret though nothing may refer to it.
func (r *Resolver) Note(name, value string) { r.note(name, value, nil) }

// note remembers the value of a reference.
func (r *Resolver) note(name, value string, bad *Fault) {
	if bad != nil || r.Lenient {
		return
	}
	if r.Values == nil {
		r.Values = map[string]secretvalue.Map{}
	}
	if r.Values[r.Owner] == nil {
		r.Values[r.Owner] = secretvalue.Map{}
	}
	r.Values[r.Owner][name] = value
}

type lookupResult struct {
	value string
	bad   *Fault
}

// New returns a resolver for a file in dir.
func New(s Sources, dir string) *Resolver {
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
	if s.Managers == nil {
		s.Managers = secretstore.New(&secretstore.Options{Getenv: s.Getenv})
	}
	return &Resolver{Sources: s, dir: dir, known: map[string]lookupResult{}}
}

// lookupSecret returns the value of file:PATH or keyring:NAME; ours reports whether inside is one of them.
func (r *Resolver) lookupSecret(inside string) (value string, bad *Fault, ours bool) {
	if secretstore.Owns(inside) {
		value, bad = r.manager(inside)
		return value, bad, true
	}
	if !isLocal(inside) {
		return "", nil, false
	}
	scheme, name, _ := strings.Cut(inside, ":")
	if a, ok := r.known[inside]; ok && !r.Lenient {
		return a.value, a.bad.clone(), true
	}
	switch {
	case strings.TrimSpace(name) != name || name == "" || strings.ContainsFunc(name, sanitize.Hidden):
		bad = &Fault{Message: fmt.Sprintf(`after "${%s:" must come %s, and then "}"`, scheme, expectedName(scheme))}
	case scheme == "keyring" && strings.Contains(name, "/"):
		bad = &Fault{Message: `a name in the keyring has no "/" here: what has one is a login, which is for no upstream to see`}
	case r.Lenient:
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

// isLocal reports whether a reference is to a file or the keyring.
func isLocal(inside string) bool {
	scheme, name, ok := strings.Cut(inside, ":")
	return ok && (scheme == "file" || scheme == "keyring") && !strings.HasPrefix(name, "-")
}

// manager returns the secret of a manager.
func (r *Resolver) manager(inside string) (string, *Fault) {
	whole := "${" + inside + "}"
	if err := secretstore.Check(inside); err != nil {
		return whole, &Fault{Message: sanitize.Line(err.Error(), 400)}
	}
	if r.Lenient {
		return whole, nil
	}
	if r.Local {
		return whole, &Fault{Message: "the settings of secret managers cannot be in a secret manager; use ${VARIABLE}, ${file:PATH} or ${keyring:NAME}"}
	}
	a, ok := r.known[inside]
	if !ok {
		if a.value, a.bad = r.readManaged(inside); a.bad != nil {
			a.value = whole
		}
		r.known[inside] = a
	}
	r.managed = append(r.managed, Use{r.offset, inside, a.bad.clone()})
	return a.value, a.bad.clone()
}

func (r *Resolver) readManaged(inside string) (string, *Fault) {
	value, err := r.Managers.Read(inside)
	if err == nil {
		return value, nil
	}
	f := &Fault{Missing: inside, Managed: true, Message: sanitize.Line(err.Error(), 300)}
	if e, ok := errors.AsType[*secretstore.Error](err); ok {
		f.Message, f.Fix = sanitize.Line(e.Message, 300), sanitize.Line(e.Fix, 200)
	}
	return "", f
}

// variable looks up a variable. The environment of the process has precedence over the env_file.
func (r *Resolver) variable(name string) (string, bool) {
	if value, set := r.Getenv(name); set {
		return value, true
	}
	value, set := r.Vars[name]
	return value, set
}

func expectedName(scheme string) string {
	if scheme == "file" {
		return "the path of a file"
	}
	return "a name in the keyring"
}

func (r *Resolver) file(name string) (string, *Fault) {
	path := Absolute(r.dir, name)
	if !slices.Contains(r.Files, path) {
		r.Files = append(r.Files, path) // even if it cannot be read: it may be created later
	}
	value, err := r.File(path)
	if err == nil {
		return value, nil
	}
	why := err.Error()
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		why = pathErr.Err.Error() // without the path, which the reference says
	}
	return "", &Fault{Missing: "file:" + name,
		Message: fmt.Sprintf("the file %.80q cannot be used: %s", name, sanitize.Line(why, 200)),
		Fix:     "check who may read it, and the path, which starts at the directory of this file"}
}

func (r *Resolver) keyring(name string) (string, *Fault) {
	value, err := "", r.noKeyring // a failing keyring may be slow for every name
	if err == nil {
		value, err = r.Keyring(name)
	}
	switch {
	case err == nil:
		return value, nil
	case errors.Is(err, store.ErrNotFound):
		return "", &Fault{Missing: "keyring:" + name, Message: fmt.Sprintf("the keyring has no %.80q", name),
			Fix: fmt.Sprintf("put it there with `sallyport auth set %.80s`", name)}
	case errors.Is(err, store.ErrNoKeyring):
		r.noKeyring = err
	}
	return "", &Fault{Missing: "keyring:" + name, Message: sanitize.Line(err.Error(), 200), Fix: "use ${VARIABLE} or ${file:PATH} where there is no keyring"}
}
