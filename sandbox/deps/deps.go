// Package deps installs Python and npm packages for programs, requested by the operator
// or, if the operator allows it, by a model. Its main type is [Installer].
//
// A request is resolved to a [Lock]: exact versions with the hashes of their files. The
// locked files are then fetched and become a [Layer]: a read-only folder that sandboxes
// mount, keyed by its lock and shared by equal requests. Resolving, fetching and, if allowed,
// building happen in a separate sandbox, whose only network access is a [Proxy] to the package indexes. Its
// output is untrusted: the host checks every file against the lock and unpacks it
// itself ([Layer]); nothing of it runs outside a sandbox.
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
	// Hosts are further hosts that serve the index's files, as "host" (ports 443 and 80) or "host:port".
	Hosts []string
	// Base is a folder that [FindBase] accepts; the packages are for its interpreter; "" is the machine's Python.
	Base string
	// Environment is another root file system or another interpreter of the host, for whose Python the packages are
	// installed; the zero value is the machine's Python. npm's packages do not depend on it.
	Environment sandbox.Environment
	// Source allows source distributions, whose build runs code in the installing sandbox.
	Source bool
	// Lock, if set, is an operator's saved lock that replaces resolving. It must be for the same packages.
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
	// Dir is a folder on the host: an entry of Python's path, or a node_modules folder.
	Dir string
	// Digest identifies it: a hash of the lock and of the layout version.
	Digest string
	// Packages are its packages by name, including dependencies.
	Packages []Package
	// Lock lists its exact content.
	Lock Lock
	// Notes say which parts of the packages were left out, and why.
	Notes []string
}

// The paths of layers in a sandbox. Node searches for packages in node_modules
// folders above the importing file, so one at the root serves all files.
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
	GuestInterpreter(sandbox.Interpreter) string
	HostInterpreter(sandbox.Interpreter) string
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
	// InUse reports whether a process uses a layer, which is then kept however old its last use is; nil: none does.
	InUse func(digest string) bool
	// Certificates is a file of the authorities that are trusted for the indexes, in PEM; "" is the system's.
	Certificates string
	// Logger gets each installation and each host that it reached; nil discards.
	Logger *slog.Logger
}

// Errors that the author of the request can fix. Errors wrap these, and say more.
var (
	// ErrRefused: the form or the name of a requirement is not allowed.
	ErrRefused = errors.New("refused")
	// ErrNotFound: the index has no such package or version, or no compatible wheel.
	ErrNotFound = errors.New("not found")
	// ErrUnsafe: a fetched file does not match the lock, or a package has forbidden content.
	ErrUnsafe = errors.New("unsafe package")
	// ErrFailed: pip or npm failed for another reason, which the error contains.
	ErrFailed = errors.New("cannot be installed")
	// ErrLimit: the installation exceeds a limit of size or time.
	ErrLimit = errors.New("limit")
)
