// Package chroot resolves paths in an [os.Root] as a process would after chroot:
// absolute links, and links with too many "..", stay inside the root.
package chroot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// maxLinks bounds the links in a path, as in the kernel.
const maxLinks = 40

// Resolve returns the path below root that name leads to, with every link
// followed, the last one too. It is relative and clean ("." is the root itself),
// and has no link in it, so that os.Root's own methods may be used with it. The
// name is slash-separated; whether it begins with a slash makes no difference.
// Its errors are of type *fs.PathError.
func Resolve(root *os.Root, name string) (string, error) {
	rest, at, links := split(name), ".", 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		if part == ".." {
			at = path.Dir(at) // of "." it is "." again
			continue
		}
		next := path.Join(at, part)
		info, err := root.Lstat(next)
		if err != nil {
			return "", pathError(name, err)
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return "", pathError(name, syscall.ELOOP)
			}
			target, err := root.Readlink(next)
			if err != nil {
				return "", pathError(name, err)
			}
			if strings.HasPrefix(target, "/") {
				at = "."
			}
			rest = append(split(target), rest...)
		case !info.IsDir() && len(rest) > 0:
			return "", pathError(name, syscall.ENOTDIR)
		default:
			at = next
		}
	}
	return at, nil
}

// split splits a path into its parts. It drops empty parts and ".", also at the end.
func split(name string) []string {
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	return parts
}

// pathError returns a *fs.PathError with the whole path, not the part that failed.
func pathError(name string, err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	return &fs.PathError{Op: "resolve", Path: fmt.Sprintf("%.4096s", name), Err: err}
}
