// Package image unpacks OCI images into directories for the root file systems of
// sandboxes, without Docker. [Pull] fetches an image that is pinned by its digest,
// verifies it, and unpacks it into a [Root].
//
// The registry's responses and the image's content are untrusted, although the operator
// chose the digest: nothing is written outside the image's own directory, and
// everything is bounded.
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
	// Dir is the directory of all images. It is created if missing, and used by this package only.
	Dir string
	// Architecture is the image's GOARCH; "" is this machine's.
	Architecture string
	// MountPoints are absolute paths of folders that are created if the image lacks them.
	MountPoints []string
	// Program prepares the image to run its own program: the folders and files are created that this needs and the image lacks. The
	// same image without it is another directory.
	Program bool
	// Insecure allows plain HTTP for registries on other machines too.
	Insecure bool
	// Limits bound the image; zero fields are those of DefaultLimits.
	Limits Limits
	// Logger receives fetches and removals; nil discards.
	Logger *slog.Logger
}

// Limits bound one image.
type Limits struct {
	// Bytes is the maximum total size of the layers, both unpacked and as fetched.
	Bytes int64
	// Entries is the maximum total number of files, folders and links in its layers.
	Entries int
	// Layers is the maximum number of layers.
	Layers int
	// Ratio is the maximum ratio of a layer's unpacked size to its fetched size.
	Ratio int64
	// Stall is how long a registry may send nothing.
	Stall time.Duration
}

// DefaultLimits returns limits that suffice for usual images with Python or Node.
func DefaultLimits() Limits {
	return Limits{Bytes: 8 << 30, Entries: 500_000, Layers: 128, Ratio: 200, Stall: time.Minute}
}

// Root is an image as a directory.
type Root struct {
	// Dir is the directory, an absolute path. It must not be written to.
	Dir string `json:"-"`
	// Reference is the reference that the image was first pulled by; "" if an older version pulled it.
	Reference string `json:"reference,omitempty"`
	// Digest is the digest of the unpacked image, "sha256:...". It differs from the reference's if that names an index.
	Digest string `json:"digest"`
	// Path is the PATH that the image sets, absolute folders.
	Path []string `json:"path,omitempty"`
	// Python and Node are the paths inside of the interpreters that were found; "" is none.
	Python string `json:"python,omitempty"`
	Node   string `json:"node,omitempty"`
	// Program is what it runs, with Options.Program.
	Program Program `json:"program,omitzero"`
}

// The errors of references and images.
var (
	// ErrUnpinned means that a reference has no digest.
	ErrUnpinned = errors.New("an image must be pinned by its digest (name@sha256:...)")
	// ErrTooLarge means that an image exceeds one of the limits.
	ErrTooLarge = errors.New("the image is larger than allowed")
	// ErrUnsafe means that a layer has unsafe entries.
	ErrUnsafe = errors.New("the image is not safe to unpack")
	// ErrChanged means that the content does not match the digest.
	ErrChanged = errors.New("the content does not match the digest")
)

// unpackVersion is the version of unpacking: it changes when the same image is unpacked differently.
const unpackVersion = "1"

// Pull returns the directory of an image, and fetches it if it does not exist yet.
// Concurrent pulls of the same image, also by other processes, fetch it once. A pull
// that is killed never leaves a partial image.
func Pull(ctx context.Context, reference string, opts Options) (Root, error) {
	opts = opts.withDefaults()
	root, err := pull(ctx, reference, opts)
	if err != nil {
		return Root{}, fmt.Errorf("pull image %.300q: %w", reference, err)
	}
	return root, nil
}

func (o Options) withDefaults() Options {
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
		return Root{}, fmt.Errorf("%q is not an absolute path", opts.Dir)
	}
	ref, err := parseReference(ctx, reference, opts)
	if err != nil {
		return Root{}, err
	}
	name := ref.Hex + "-" + opts.Architecture + "-" + unpackVersion
	if opts.Program {
		name += "-program"
	}
	s := imageDir(filepath.Join(opts.Dir, name))
	unlock, err := s.lock(ctx)
	if err != nil {
		return Root{}, err
	}
	defer unlock()
	if root, err := s.load(); err == nil { // with the lock held, so that no removal has begun
		return root, nil
	}
	if err := s.sweep(); err != nil {
		return Root{}, err
	}
	start := time.Now()
	root, err := s.populate(ctx, ref, opts)
	if err != nil {
		return Root{}, errors.Join(err, s.sweep())
	}
	opts.Logger.Info("pulled image", "image", reference, "digest", root.Digest, "duration", time.Since(start))
	return root, nil
}

// imageDir is the directory of one image. It exists only if the image is complete. Work on
// the image is done, with a lock, in a directory with the suffix ".lock" next to it;
// files that the owner of the lock finds there are the remains of a killed process.
type imageDir string

const metadataFile = "image.json"

func (s imageDir) rootfs() string { return filepath.Join(string(s), "rootfs") }

func (s imageDir) lockDir() string { return string(s) + ".lock" }

// load returns the image if it exists, and updates its time of last use.
func (s imageDir) load() (Root, error) {
	data, err := os.ReadFile(filepath.Join(string(s), metadataFile))
	if err != nil {
		return Root{}, err
	}
	root := Root{Dir: s.rootfs()}
	if err := json.Unmarshal(data, &root); err != nil {
		return Root{}, err
	}
	if _, err := os.Stat(root.Dir); err != nil {
		return Root{}, err
	}
	return root, s.markUsed()
}

// markUsed updates the time of last use.
func (s imageDir) markUsed() error {
	now := time.Now()
	return os.Chtimes(filepath.Join(string(s), metadataFile), now, now)
}

// lock waits for the lock until ctx ends.
func (s imageDir) lock(ctx context.Context) (unlock func(), err error) {
	for {
		if err := os.MkdirAll(s.lockDir(), 0o755); err != nil {
			return nil, err
		}
		unlock, err := filelock.Dir(s.lockDir(), 100*time.Millisecond)
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

// sweep removes partial work. It is called with the lock held.
func (s imageDir) sweep() error {
	left, err := os.ReadDir(s.lockDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.lockDir(), entry.Name())))
	}
	return err
}

// populate fetches and unpacks the image in the lock directory, and then moves it to the shelf atomically.
func (s imageDir) populate(ctx context.Context, ref reference, opts Options) (Root, error) {
	work, err := os.MkdirTemp(s.lockDir(), "work-")
	if err != nil {
		return Root{}, err
	}
	tree := filepath.Join(work, filepath.Base(s.rootfs()))
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
	if err := makeMountPoints(into, opts.MountPoints); err != nil {
		return Root{}, err
	}
	root.Reference = ref.name.Name()
	root.Python, root.Node = findExecutable(into, root.Path, "python3", "python"), findExecutable(into, root.Path, "node", "nodejs")
	data, err := json.Marshal(root)
	if err != nil {
		return Root{}, err
	}
	if err := os.WriteFile(filepath.Join(work, metadataFile), data, 0o644); err != nil {
		return Root{}, err
	}
	if err := syncAll(work); err != nil {
		return Root{}, err
	}
	if err := errors.Join(os.RemoveAll(string(s)), os.Rename(work, string(s))); err != nil {
		return Root{}, err
	}
	root.Dir = s.rootfs()
	return root, nil
}
