package deps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/sandbox"
)

// layerMetadata is the content of a layer's layer.json.
type layerMetadata struct {
	Lock  Lock     `json:"lock"`
	Notes []string `json:"notes,omitempty"`
}

// contentDir returns the name of the subfolder of a layer that sandboxes mount.
func contentDir(interpreter sandbox.Interpreter) string {
	if interpreter == sandbox.Node {
		return "node_modules"
	}
	return "python"
}

// build unpacks the fetched files and moves the layer to its final path atomically.
func (i *Installer) build(ctx context.Context, request Request, lock Lock, got fetchResult, staging string) (Layer, error) {
	digest := lock.digest(lock.target())
	if layer, ok := i.load(digest); ok {
		return layer, nil
	}
	made := filepath.Join(staging, "layer")
	inside := filepath.Join(made, contentDir(lock.Interpreter))
	if err := errors.Join(os.MkdirAll(inside, 0o755), os.Chmod(inside, 0o755)); err != nil {
		return Layer{}, err
	}
	root, err := os.OpenRoot(inside)
	if err != nil {
		return Layer{}, err
	}
	defer func() { _ = root.Close() }()
	u := newUnpacker(root, i.opts.Bytes, i.opts.Entries)
	if lock.Interpreter == sandbox.Node {
		err = u.unpackTarballs(lock.Files, got.byHash(), "node_modules/")
	} else if err = u.unpackWheels(lock.Files, got); err == nil {
		i.compile(ctx, request, u, inside, filepath.Join(staging, "compiled"))
	}
	if err == nil {
		err = u.seal()
	}
	if err == nil {
		err = atomicfile.Replace(metadataPath(made), encode(layerMetadata{Lock: lock, Notes: u.notes}, ""), 0o600)
	}
	if err != nil {
		return Layer{}, err
	}
	err = os.Rename(made, layerPath(i.dir, digest))
	layer, ok := i.load(digest) // perhaps made by another request with the same lock
	if !ok {
		return Layer{}, errors.Join(errors.New("the layer is not where it was put"), err)
	}
	return layer, nil
}

// unpackWheels unpacks the wheels of a lock. For a source distribution it unpacks the built wheel.
func (u *unpacker) unpackWheels(files []File, got fetchResult) error {
	by := got.byHash()
	for _, file := range files {
		from := by[file.Hash]
		if file.Source {
			name := got.report.Built[from.name]
			parts := wheelName.FindStringSubmatch(name)
			built, ok := got.files["built/"+name]
			if !ok || parts == nil || canonical(parts[1]) != file.Name {
				return fmt.Errorf("%w: no wheel of %s was built", ErrUnsafe, file.Name)
			}
			from, file.Version = built, parts[2]
		}
		if err := u.unpackWheel(from, file.Name, file.Version); err != nil {
			return err
		}
	}
	return nil
}

var compiledName = regexp.MustCompile(`^((?:[^/]+/)*)__pycache__/([^/]+)\.([a-z0-9-]+)\.pyc$`)

// compile adds the bytecode that Python cannot write at the first import, because the layer is
// read-only: imports take a third of the time with it. It is made in a sandbox. If that fails, there is none.
func (i *Installer) compile(ctx context.Context, request Request, u *unpacker, inside, staging string) {
	service, err := i.service(request)
	if err != nil {
		return
	}
	service.Mounts[PythonDir] = inside
	if err := os.Mkdir(staging, 0o700); err != nil {
		return
	}
	got, err := i.runDriver(ctx, service, request, driverRequest{Language: "compile", Layer: PythonDir}, staging)
	for name, file := range got.files {
		if err == nil {
			err = u.addCompiled(name, file.path)
		}
	}
	if err != nil {
		i.log.Warn("compile packages", "error", err)
	}
}

// addCompiled takes one compiled module; its source must be there.
func (u *unpacker) addCompiled(name, path string) error {
	parts := compiledName.FindStringSubmatch(name)
	if parts == nil || checkName(name) != nil {
		return fmt.Errorf("%w: the compiled file %.100q", ErrUnsafe, name)
	}
	if _, err := u.root.Lstat(filepath.FromSlash(parts[1] + parts[2] + ".py")); err != nil {
		return fmt.Errorf("%w: %.100q has no source", ErrUnsafe, name)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := u.write(name, false, file); !errors.Is(err, errExists) {
		return err
	}
	return nil
}

// find returns the layer of an earlier equal request.
func (i *Installer) find(key string) (Layer, bool) {
	lock, ok := i.loadLock(key)
	if !ok {
		return Layer{}, false
	}
	return i.load(lock.digest(lock.target()))
}

// load reads a layer's metadata, and updates its time of last use.
func (i *Installer) load(digest string) (Layer, bool) {
	unlock, err := lockLayers(i.dir)
	if err != nil {
		i.log.Warn("lock packages", "error", err)
		return Layer{}, false
	}
	defer unlock()
	dir := layerPath(i.dir, digest)
	data, err := os.ReadFile(metadataPath(dir))
	var a layerMetadata
	if err != nil || json.Unmarshal(data, &a) != nil || a.Lock.validate() != nil || a.Lock.digest(a.Lock.target()) != digest {
		return Layer{}, false
	}
	layer := Layer{Interpreter: a.Lock.Interpreter, Dir: filepath.Join(dir, contentDir(a.Lock.Interpreter)), Digest: digest, Packages: a.Lock.packages(), Lock: a.Lock, Notes: a.Notes}
	if !isFolder(layer.Dir) {
		return Layer{}, false
	}
	if err := MarkUsed(layer); err != nil {
		i.log.Warn("use packages", "error", err)
	}
	return layer, true
}

func (i *Installer) lockFile(key string) string { return filepath.Join(i.dir, "requests", key+".json") }

// loadLock returns the lock of an earlier equal request, and false if there is no valid one.
func (i *Installer) loadLock(key string) (Lock, bool) {
	data, err := os.ReadFile(i.lockFile(key))
	if err != nil {
		return Lock{}, false
	}
	lock, err := ParseLock(data)
	return lock, err == nil
}

func (i *Installer) saveLock(key string, lock Lock) error {
	return atomicfile.Replace(i.lockFile(key), lock.JSON(), 0o600)
}

// sweep removes layers that have been unused for long, and partial files of killed processes.
func (i *Installer) sweep() {
	if _, err := PruneLayers(context.Background(), i.dir, PruneOptions{Before: time.Now().Add(-i.opts.Keep), Keep: i.opts.InUse, Logger: i.log}); err != nil {
		i.log.Warn("sweep packages", "error", err)
	}
	entries, err := os.ReadDir(filepath.Join(i.dir, "tmp"))
	if err != nil {
		i.log.Warn("sweep packages", "error", err)
	}
	for _, entry := range entries {
		dir := filepath.Join(i.dir, "tmp", entry.Name())
		if age := time.Since(lastUse(dir)); age > max(time.Hour, 2*i.opts.Timeout) {
			i.log.Info("packages swept", "folder", entry.Name(), "unused", age)
			removeTree(dir)
		}
	}
}

// lastUse returns when a layer, or a folder of partial work, was last used; now if there is none.
func lastUse(dir string) time.Time {
	info, err := os.Stat(metadataPath(dir))
	if err != nil {
		info, err = os.Stat(dir)
	}
	if err != nil {
		return time.Now()
	}
	return info.ModTime()
}

// removeTree removes a folder with read-only subfolders.
func removeTree(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
