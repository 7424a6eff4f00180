package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"sallyport/internal/chroot"
)

// The names that remove entries of lower layers.
const (
	whiteout       = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

// The maximum lengths of a path and of a name in bytes, as on Linux.
const (
	maxPath = 4095
	maxName = 255
)

// minUnpackLimit is the unpacked size that is always allowed, regardless of Limits.Ratio.
const minUnpackLimit = 32 << 20

// unpacker unpacks layers over each other in a directory. It creates only files, folders
// and links, all owned by us and readable by all. Links are resolved by [chroot.Resolve],
// not by the system, as for a process inside, so that a folder that is a link in a lower
// layer always leads to a path inside the directory.
type unpacker struct {
	root       *os.Root
	limits     Limits
	bytes      int64             // of all layers so far
	entries    int               // likewise
	layerPaths map[string]bool   // entries of the current layer, and their parents
	folders    map[string]string // cache of resolved folders, cleared by removals
}

// unpack unpacks one layer, a tar archive. fetched is the compressed size in bytes.
func (u *unpacker) unpack(ctx context.Context, stream io.Reader, fetched int64) error {
	u.layerPaths, u.folders = map[string]bool{}, map[string]string{}
	counted := &limitedReader{ctx: ctx, inner: stream, left: max(minUnpackLimit, fetched*u.limits.Ratio), unpacker: u}
	archive := tar.NewReader(counted)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read layer: %w", err)
		}
		if u.entries++; u.entries > u.limits.Entries {
			return fmt.Errorf("%w: more than %d files", ErrTooLarge, u.limits.Entries)
		}
		if err := u.entry(header, archive); err != nil {
			return fmt.Errorf("unpack %.200q: %w", header.Name, err)
		}
	}
	_, err := io.Copy(io.Discard, counted) // the digest includes data after the archive
	return err
}

// limitedReader returns an error when a layer becomes too large or ctx ends.
type limitedReader struct {
	ctx      context.Context //nolint:containedctx // of the one call that reads
	inner    io.Reader
	left     int64 // for this layer
	unpacker *unpacker
}

func (c *limitedReader) Read(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	n, err := c.inner.Read(p)
	c.unpacker.bytes += int64(n)
	if c.left -= int64(n); c.left < 0 {
		return 0, fmt.Errorf("%w: it unpacks to more than %d times what was fetched", ErrTooLarge, c.unpacker.limits.Ratio)
	}
	if c.unpacker.bytes > c.unpacker.limits.Bytes {
		return 0, fmt.Errorf("%w: it unpacks to more than %d bytes", ErrTooLarge, c.unpacker.limits.Bytes)
	}
	return n, err
}

func (u *unpacker) entry(header *tar.Header, content io.Reader) error {
	name, err := cleanName(header.Name)
	if err != nil || name == "." {
		return err
	}
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeDir, tar.TypeSymlink, tar.TypeLink:
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo, tar.TypeXGlobalHeader:
		return nil // skip devices: sandboxes do not need them, and they are not safe on the host
	default:
		return fmt.Errorf("%w: an entry of the kind %q", ErrUnsafe, header.Typeflag)
	}
	dir, err := u.folder(path.Dir(name))
	if err != nil {
		return err
	}
	base := path.Base(name)
	switch {
	case base == opaqueWhiteout:
		return u.removeLower(dir, false)
	case strings.HasPrefix(base, whiteout):
		return u.whiteout(dir, strings.TrimPrefix(base, whiteout))
	}
	at := path.Join(dir, base)
	if err := u.create(at, header, content); err != nil {
		return err
	}
	u.recordPath(at)
	return nil
}

// cleanName makes the name of an entry relative to the image's root. Names with ".." are errors.
func cleanName(name string) (string, error) {
	if len(name) > maxPath || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%w: a path of %d bytes", ErrUnsafe, len(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." || len(part) > maxName {
			return "", fmt.Errorf("%w: such a path", ErrUnsafe)
		}
	}
	return path.Clean(strings.TrimLeft(name, "/")), nil
}

// recordPath records an entry of the current layer, so that the layer's own whiteouts do not remove it.
func (u *unpacker) recordPath(at string) {
	for ; at != "." && !u.layerPaths[at]; at = path.Dir(at) {
		u.layerPaths[at] = true
	}
}

// folder returns the resolved path of a folder, and creates it if missing.
func (u *unpacker) folder(name string) (string, error) {
	at := "."
	if name == "." {
		return at, nil
	}
	if known, ok := u.folders[name]; ok {
		return known, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		next := path.Join(at, part)
		info, err := u.root.Lstat(next)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if next, err = chroot.Resolve(u.root, next); err == nil {
				info, err = u.root.Lstat(next)
			}
			if err != nil { // a link to nowhere: nothing can be below it
				return "", fmt.Errorf("%w: its folder is a link to nowhere", ErrUnsafe)
			}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := u.mkdir(next); err != nil {
				return "", err
			}
		case err != nil:
			return "", err
		case !info.IsDir():
			return "", fmt.Errorf("%w: its folder is a file", ErrUnsafe)
		}
		at = next
	}
	u.folders[name] = at
	return at, nil
}

func (u *unpacker) mkdir(at string) error {
	if err := u.root.Mkdir(at, 0o755); err != nil {
		return err
	}
	u.recordPath(at)
	return u.root.Chmod(at, 0o755) // whatever the umask is
}

// create creates one entry, replacing an existing one.
func (u *unpacker) create(at string, header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeLink {
		return u.link(at, header.Linkname)
	}
	info, err := u.root.Lstat(at)
	if err == nil && info.IsDir() && header.Typeflag == tar.TypeDir {
		return nil
	}
	if err == nil {
		err = u.remove(at)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return u.mkdir(at)
	case tar.TypeSymlink:
		if header.Linkname == "" || len(header.Linkname) > maxPath || strings.ContainsRune(header.Linkname, 0) {
			return fmt.Errorf("%w: a link without a target", ErrUnsafe)
		}
		return u.root.Symlink(header.Linkname, at)
	}
	return u.file(at, header, content)
}

// file writes a regular file, executable or not.
func (u *unpacker) file(at string, header *tar.Header, content io.Reader) error {
	if header.Size > u.limits.Bytes-u.bytes { // a sparse one has more bytes than the archive
		return fmt.Errorf("%w: a file of %d bytes", ErrTooLarge, header.Size)
	}
	mode := fs.FileMode(0o644)
	if header.Mode&0o111 != 0 {
		mode = 0o755
	}
	f, err := u.root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	before := u.bytes
	n, err := io.Copy(f, content)
	u.bytes = max(u.bytes, before+n) // holes count with their full size
	if err := errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	if year := header.ModTime.Year(); year < 1970 || year > 2100 {
		return nil
	}
	// Python treats compiled files as stale if the time of their source has changed.
	return u.root.Chtimes(at, header.ModTime, header.ModTime)
}

// link makes a hard link to a file of this image. A symbolic link as target is not followed.
func (u *unpacker) link(at, target string) error {
	name, err := cleanName(target)
	if err != nil {
		return err
	}
	dir, err := chroot.Resolve(u.root, path.Dir(name))
	if err != nil {
		return fmt.Errorf("%w: a hard link to a missing file", ErrUnsafe)
	}
	from := path.Join(dir, path.Base(name))
	info, err := u.root.Lstat(from)
	if err != nil || !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 {
		return fmt.Errorf("%w: a hard link to something that is not a file of the image", ErrUnsafe)
	}
	if from == at {
		return nil
	}
	if err := u.remove(at); err != nil {
		return err
	}
	return u.root.Link(from, at)
}

func (u *unpacker) remove(at string) error {
	clear(u.folders)
	return u.root.RemoveAll(at)
}

// whiteout removes the entry of lower layers with that name.
func (u *unpacker) whiteout(dir, base string) error {
	if base == "" || base == "." || base == ".." || strings.HasPrefix(base, whiteout) {
		return fmt.Errorf("%w: a whiteout of nothing", ErrUnsafe)
	}
	return u.removeLower(path.Join(dir, base), true)
}

// removeLower removes lower layers' entries in a folder, and at the path itself if itself is set, but keeps the current layer's.
func (u *unpacker) removeLower(at string, itself bool) error {
	if itself && !u.layerPaths[at] {
		return u.remove(at)
	}
	info, err := u.root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	dir, err := u.root.Open(at)
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := u.removeLower(path.Join(at, name), true); err != nil {
			return err
		}
	}
	return nil
}
