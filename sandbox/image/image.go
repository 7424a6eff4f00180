// Package image turns OCI images into directories that sandboxes have as their
// root file system, without Docker. [Pull] fetches an image that is pinned by its
// digest, verifies every byte of it, and unpacks it; a [Root] is what that makes.
//
// What a registry sends is hostile, and so is what an image holds, although its
// digest was chosen by the operator: nothing in it reaches a path outside of
// the image's own directory, and all of it is bounded.
package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"sallyport/internal/filelock"
)

// Options say where images are kept and how large they may be.
type Options struct {
	// Dir is where images are kept; it is made if need be, and belongs to this package alone.
	Dir string
	// Architecture is what the image must be built for, in the words of Go; "" is this machine's.
	Architecture string
	// Points are folders, absolute, that the directory gets if the image lacks them.
	Points []string
	// Insecure allows plain HTTP also where the registry is not on this machine.
	Insecure bool
	// Limits bound the image; a zero field is that of DefaultLimits.
	Limits Limits
	// Logger gets what is fetched and removed; nil discards.
	Logger *slog.Logger
}

// Limits bound one image.
type Limits struct {
	// Bytes is the size of all layers together, unpacked, and that of what is fetched.
	Bytes int64
	// Entries is how many files, folders and links its layers have together.
	Entries int
	// Layers is how many it has.
	Layers int
	// Ratio is how many times larger a layer may be than what was fetched for it.
	Ratio int64
	// Stall is how long a registry may send nothing.
	Stall time.Duration
}

// DefaultLimits are enough for images that people build for programs in Python or Node.
func DefaultLimits() Limits {
	return Limits{Bytes: 8 << 30, Entries: 500_000, Layers: 128, Ratio: 200, Stall: time.Minute}
}

// Root is an image as a directory.
type Root struct {
	// Dir is the directory, an absolute path. It must not be written to.
	Dir string `json:"-"`
	// Digest is that of the image that was unpacked, "sha256:...": another one if the reference was to an index.
	Digest string `json:"digest"`
	// Path is the PATH that the image sets, absolute folders.
	Path []string `json:"path,omitempty"`
	// Python and Node are the interpreters that are found there, as they are called inside; "" is none.
	Python string `json:"python,omitempty"`
	Node   string `json:"node,omitempty"`
}

// The sentinels of what is wrong with a reference or an image.
var (
	// ErrUnpinned says that a reference has no digest.
	ErrUnpinned = errors.New("an image must be pinned by its digest (name@sha256:...)")
	// ErrTooLarge says that an image is beyond one of the limits.
	ErrTooLarge = errors.New("the image is larger than allowed")
	// ErrUnsafe says that a layer has what no honest one has.
	ErrUnsafe = errors.New("the image is not safe to unpack")
	// ErrChanged says that the content does not match the digest.
	ErrChanged = errors.New("what the registry sent is not what was asked for")
)

// recipe changes when the same image would be unpacked in another way.
const recipe = "1"

// Pull returns the directory of an image, and fetches it if it is not there yet.
// Of several who want the same at once, in this process or another, one does the work.
// One that ends early, killed even, leaves nothing that is taken for an image.
func Pull(ctx context.Context, reference string, opts Options) (Root, error) {
	opts = opts.filled()
	root, err := pull(ctx, reference, opts)
	if err != nil {
		return Root{}, fmt.Errorf("pull image %.300q: %w", reference, err)
	}
	return root, nil
}

func (o Options) filled() Options {
	d := DefaultLimits()
	l := &o.Limits
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Architecture == "" {
		o.Architecture = runtime.GOARCH
	}
	if l.Bytes == 0 {
		l.Bytes = d.Bytes
	}
	if l.Entries == 0 {
		l.Entries = d.Entries
	}
	if l.Layers == 0 {
		l.Layers = d.Layers
	}
	if l.Ratio == 0 {
		l.Ratio = d.Ratio
	}
	if l.Stall == 0 {
		l.Stall = d.Stall
	}
	return o
}

func pull(ctx context.Context, reference string, opts Options) (Root, error) {
	if !filepath.IsAbs(opts.Dir) {
		return Root{}, fmt.Errorf("%q is no absolute path", opts.Dir)
	}
	ref, err := pinned(ctx, reference, opts)
	if err != nil {
		return Root{}, err
	}
	s := shelf(filepath.Join(opts.Dir, ref.Hex+"-"+opts.Architecture+"-"+recipe))
	if root, err := s.root(); err == nil {
		return root, nil
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return Root{}, err
	}
	defer unlock()
	if root, err := s.root(); err == nil { // somebody else has done it meanwhile
		return root, nil
	}
	if err := s.sweep(); err != nil {
		return Root{}, err
	}
	start := time.Now()
	root, err := s.fill(ctx, ref, opts)
	if err != nil {
		return Root{}, errors.Join(err, s.sweep())
	}
	opts.Logger.Info("pulled image", "image", reference, "digest", root.Digest, "duration", time.Since(start))
	return root, nil
}

// shelf is the place of one image. The image is there if the directory is. Next to it
// is one of the same name with ".lock", which is locked by who works on it, and
// in which the work is done: what the owner of the lock finds there was left behind.
type shelf string

const description = "image.json"

func (s shelf) tree() string { return filepath.Join(string(s), "rootfs") }

func (s shelf) locks() string { return string(s) + ".lock" }

// root reads what there is, and notes that it was used.
func (s shelf) root() (Root, error) {
	data, err := os.ReadFile(filepath.Join(string(s), description))
	if err != nil {
		return Root{}, err
	}
	root := Root{Dir: s.tree()}
	if err := json.Unmarshal(data, &root); err != nil {
		return Root{}, err
	}
	if _, err := os.Stat(root.Dir); err != nil {
		return Root{}, err
	}
	now := time.Now()
	return root, os.Chtimes(filepath.Join(string(s), description), now, now)
}

// lock waits for its turn for as long as ctx lasts.
func (s shelf) lock(ctx context.Context) (unlock func(), err error) {
	for {
		if err := os.MkdirAll(s.locks(), 0o755); err != nil {
			return nil, err
		}
		unlock, err := filelock.Dir(s.locks(), 100*time.Millisecond)
		if err == nil {
			return unlock, nil
		}
		if !errors.Is(err, filelock.ErrBusy) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
	}
}

// sweep removes what was left half done. Only the owner of the lock may do that.
func (s shelf) sweep() error {
	left, err := os.ReadDir(s.locks())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.locks(), entry.Name())))
	}
	return err
}

// fill fetches and unpacks next to the shelf and then moves it there atomically.
func (s shelf) fill(ctx context.Context, ref reference, opts Options) (Root, error) {
	work, err := os.MkdirTemp(s.locks(), "work-")
	if err != nil {
		return Root{}, err
	}
	tree := filepath.Join(work, filepath.Base(s.tree()))
	if err := errors.Join(os.Chmod(work, 0o755), os.Mkdir(tree, 0o755), os.Chmod(tree, 0o755)); err != nil { // whatever the umask is
		return Root{}, err
	}
	into, err := os.OpenRoot(tree)
	if err != nil {
		return Root{}, err
	}
	defer func() { _ = into.Close() }()
	root, err := ref.fetch(ctx, into, opts)
	if err != nil {
		return Root{}, err
	}
	if err := makePoints(into, opts.Points); err != nil {
		return Root{}, err
	}
	root.Python, root.Node = find(into, root.Path, "python3", "python"), find(into, root.Path, "node", "nodejs")
	data, err := json.Marshal(root)
	if err != nil {
		return Root{}, err
	}
	if err := os.WriteFile(filepath.Join(work, description), data, 0o644); err != nil {
		return Root{}, err
	}
	if err := syncAll(work); err != nil {
		return Root{}, err
	}
	if err := errors.Join(os.RemoveAll(string(s)), os.Rename(work, string(s))); err != nil {
		return Root{}, err
	}
	root.Dir = s.tree()
	return root, nil
}
