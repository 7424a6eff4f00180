// Package deps gives programs packages of Python and npm that the operator, or a
// model that the operator lets, asks for by name. Its main type is [Installer].
//
// A request is resolved to a [Lock]: exact versions with the hashes of their files. What
// the lock says is then fetched, and becomes a [Layer]: a read-only folder that sandboxes
// mount, keyed by its lock and shared by all who ask for the same. Resolving, fetching and, where allowed,
// building happen in a sandbox of their own, with a [Proxy] to the package indexes as the only way out. What
// comes out of it is untrusted: the host checks every file against the lock and unpacks it
// itself ([Layer]); nothing of it is run outside of a sandbox.
package deps

import (
	"errors"
	"log/slog"
	"time"

	"sallyport/sandbox"
)

// Request is a set of packages for one interpreter. It is a plain value.
type Request struct {
	// Interpreter is the language of Packages.
	Interpreter sandbox.Interpreter
	// Packages are requirements, as in "pandas>=2,<3" or "requests[socks]==2.32.3" for Python
	// and "zod@3.25.0" or "@scope/name@^1.2" for Node. No URLs, paths or options; see [Check].
	Packages []string
	// Index is the URL of the package index or registry; "" is PyPI or npm's. It comes from settings, never from a model.
	Index string
	// Hosts are further hosts that an index serves files from, as "host" or "host:port" (443 and 80 without one).
	Hosts []string
	// Base is a folder that [FindBase] accepts; the packages are for its interpreter; "" is the machine's Python.
	Base string
	// Environment is another root file system or another interpreter of the host; its Python is what the packages are
	// for; the zero value is the machine's. npm's packages are the same everywhere.
	Environment sandbox.Environment
	// Source allows source distributions: their build runs code, in the sandbox that installs.
	Source bool
	// Lock, if set, is used in place of resolving: what an operator has kept. It must be for the same packages.
	Lock *Lock
}

// Package is one installed package.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Layer is a folder of installed packages. It is read-only and never changes.
type Layer struct {
	Interpreter sandbox.Interpreter
	// Dir is on the host: what belongs on Python's path, or a folder node_modules.
	Dir string
	// Digest names it: a hash of the lock and of how it was unpacked.
	Digest string
	// Packages are what is in it, by name, what was only needed by others included.
	Packages []Package
	// Lock says exactly what is in it.
	Lock Lock
	// Notes say what of the packages was left out, and why.
	Notes []string
}

// Where layers appear in a sandbox. Node looks for packages in a folder
// node_modules above the importing file, so the root's serves all.
const (
	PythonDir = "/opt/packages/python"
	NodeDir   = "/node_modules"
)

// AddTo lets programs of the environment import what is in the layer.
func (l Layer) AddTo(env *sandbox.Environment) {
	at := PythonDir
	if l.Interpreter == sandbox.Node {
		at = NodeDir
		env.NodePath = append(env.NodePath, at)
	} else {
		env.PythonPath = append([]string{at}, env.PythonPath...) // before a base's
	}
	addLayer(env, at, l.Dir, l.Digest)
}

// Host starts the sandboxes that resolve and fetch: a *sandbox.Host.
type Host interface {
	Serve(sandbox.Service) (*sandbox.Server, error)
	Program(sandbox.Interpreter) string
	ProgramOnHost(sandbox.Interpreter) string
}

// Options of an Installer. The zero value of each field is its default.
type Options struct {
	// Bytes and Entries bound what one layer unpacks to; 0 is 1 GiB and 100,000 files and folders.
	Bytes   int64
	Entries int
	// Memory is what the sandbox that installs may use, downloaded files included, in bytes; 0 is 2 GiB.
	Memory int64
	// Timeout bounds one installation; 0 is 5 minutes.
	Timeout time.Duration
	// Keep is how long an unused layer is kept; 0 is 30 days.
	Keep time.Duration
	// Certificates is a file of the authorities that are trusted for the indexes, in PEM; "" is the system's.
	Certificates string
	// Logger gets each installation and each host that it reached; nil discards.
	Logger *slog.Logger
}

// Errors that the author of the request can fix. Errors wrap these, and say more.
var (
	// ErrRefused: a requirement is not of the form that is accepted, or its name never is.
	ErrRefused = errors.New("refused")
	// ErrNotFound: the index has no such package, version, or no wheel of it that fits.
	ErrNotFound = errors.New("not found")
	// ErrUnsafe: what was fetched is not what the lock says, or tries what no package may.
	ErrUnsafe = errors.New("unsafe package")
	// ErrFailed: pip or npm failed for another reason, which the error has.
	ErrFailed = errors.New("cannot be installed")
	// ErrLimit: it is larger or takes longer than is allowed.
	ErrLimit = errors.New("limit")
)
