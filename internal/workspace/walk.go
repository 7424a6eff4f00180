package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
)

// Links, and anything but files and folders, are not followed, opened or sent.
var (
	errLink       = errors.New("a link, which is not followed")
	errNotRegular = errors.New("neither a file nor a folder")
	errFull       = errors.New("the workspace is full")

	errFolder = errors.New("a folder")
)

// Files returns the files of the workspace, folders before their contents, without content. An error with a path says
// why that one is skipped; one without a path ends the iteration.
func (d *Dir) Files() iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		room, count := d.opts.Bytes, 0
		err := d.walk(func(f File, err error) error {
			if err == nil && (f.Size > room || count >= d.opts.Inodes) {
				err = errFull
			}
			if err == nil {
				room, count = room-f.Size, count+1
			}
			if !yield(f, err) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.SkipAll) {
			yield(File{}, fmt.Errorf("list workspace: %w", err))
		}
	}
}

// walk calls visit for all entries except hidden ones.
func (d *Dir) walk(visit func(File, error) error) error {
	return walk(d.root, "", func(f File, err error) error {
		if d.opts.Hidden(f.Path) {
			return fs.SkipDir
		}
		return visit(d.withVersion(f), err)
	})
}

// withVersion gives a file of a copy the version that it has on all machines.
func (d *Dir) withVersion(f File) File {
	if d.opts.Copy != nil && f.Version != "" {
		f.local = f.Version
		f.Version = d.opts.Copy.version(f.Path, f.local)
	}
	return f
}

// walk calls visit for all that is below dir, with the path prefix. What is removed during the walk is left out.
func walk(dir *os.Root, prefix string, visit func(File, error) error) error {
	names, err := readNames(dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if prefix == "" && strings.HasPrefix(name, tempPrefix) {
			continue
		}
		if err := step(dir, prefix+name, name, visit); err != nil {
			return err
		}
	}
	return nil
}

func step(dir *os.Root, path, name string, visit func(File, error) error) error {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = Check(path)
	}
	if err != nil {
		return ignoreSkip(visit(File{Path: path}, err))
	}
	f, err := describe(path, info)
	if stop := visit(f, err); errors.Is(stop, fs.SkipDir) {
		return nil
	} else if stop != nil || err != nil || !f.Folder {
		return stop
	}
	sub, err := dir.OpenRoot(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return visit(f, err)
	}
	defer func() { _ = sub.Close() }()
	if err := walk(sub, path+"/", visit); errors.Is(err, fs.SkipAll) {
		return err
	} else if err != nil {
		return visit(f, err)
	}
	return nil
}

// ignoreSkip returns nil for SkipDir of an entry without children.
func ignoreSkip(err error) error {
	if errors.Is(err, fs.SkipDir) {
		return nil
	}
	return err
}

// describe returns a File from its file info; the error says why it is not accepted.
func describe(path string, info fs.FileInfo) (File, error) {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return File{Path: path, Size: info.Size(), Executable: mode&0o100 != 0, Modified: info.ModTime(), Version: version(info)}, nil
	case mode.IsDir():
		return File{Path: path, Folder: true}, nil
	case mode&fs.ModeSymlink != 0:
		return File{Path: path}, errLink
	}
	return File{Path: path}, errNotRegular
}

// readNames returns only names: reading entries would look files up by path.
func readNames(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}
