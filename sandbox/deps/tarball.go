package deps

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// npmLock is the part of npm's package-lock.json that decides what is installed.
type npmLock struct {
	LockfileVersion int `json:"lockfileVersion"`
	Packages        map[string]struct {
		Name      string `json:"name"`
		Version   string `json:"version"`
		Resolved  string `json:"resolved"`
		Integrity string `json:"integrity"`
		Link      bool   `json:"link"`
		InBundle  bool   `json:"inBundle"`
		Optional  bool   `json:"optional"`
	} `json:"packages"`
}

// npmFiles reads npm's lock: every package must come from the registry, with a sha512. For a package that is
// installed under an alias, the file has the name of the package, and the path has the alias.
func npmFiles(raw json.RawMessage) ([]File, error) {
	var lock npmLock
	if err := json.Unmarshal(raw, &lock); err != nil {
		return nil, fmt.Errorf("read npm's lock: %w", err)
	}
	if lock.LockfileVersion < 2 || lock.LockfileVersion > 3 {
		return nil, fmt.Errorf("read npm's lock: it is of version %d: npm 7 or later is needed", lock.LockfileVersion)
	}
	var files []File
	for at, p := range lock.Packages {
		if at == "" || p.InBundle { // what comes within another's tarball
			continue
		}
		if !npmPath.MatchString(at) || len(at) > 1000 {
			return nil, fmt.Errorf("%w: invalid package path %.100q", ErrUnsafe, at)
		}
		name := cmp.Or(p.Name, npmName(at))
		if p.Link || !isNPMName(name) || strings.HasPrefix(p.Resolved, "git") || strings.HasPrefix(p.Resolved, "file:") {
			return nil, fmt.Errorf("%w: %.100q does not come from the registry", ErrUnsafe, at)
		}
		hash := npmHash(p.Integrity)
		if hash == "" {
			return nil, fmt.Errorf("%w: the registry has no sha512 of %.100q", ErrUnsafe, at)
		}
		files = append(files, File{Name: name, Version: p.Version, Hash: hash, Path: at, Optional: p.Optional})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// npmName returns the name of the package at a path of npm's lock.
func npmName(at string) string {
	return at[strings.LastIndex("/"+at, "/node_modules/")+len("node_modules/"):]
}

func isNPMName(name string) bool {
	at := "node_modules/" + name
	return npmPath.MatchString(at) && npmName(at) == name
}

// npmHash returns the sha512 of an integrity such as "sha512-... sha1-...", "" if there is none.
func npmHash(integrity string) string {
	for one := range strings.FieldsSeq(integrity) {
		value, ok := strings.CutPrefix(one, "sha512-")
		value, _, _ = strings.Cut(value, "?")
		if sum, err := base64.StdEncoding.DecodeString(value); ok && err == nil && len(sum) == 64 {
			return "sha512:" + hex.EncodeToString(sum)
		}
	}
	return ""
}

// unpackTarballs unpacks npm's packages to their paths in the lock. The deepest paths come
// first, because existing files are not overwritten.
func (u *unpacker) unpackTarballs(files []File, by map[string]download, prefix string) error {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(strings.Count(b.Path, "/node_modules/")-strings.Count(a.Path, "/node_modules/"), strings.Compare(a.Path, b.Path))
	})
	for _, file := range files {
		from, ok := by[file.Hash]
		if !ok {
			continue // optional, and for another system
		}
		if err := u.unpackTarball(from.path, strings.TrimPrefix(file.Path, prefix)); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	return nil
}

func (u *unpacker) unpackTarball(file, to string) error {
	archive, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	plain, err := gzip.NewReader(archive)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	// What is skipped costs time too, so the whole is bounded.
	reader := tar.NewReader(io.LimitReader(plain, 2*u.bytes+(64<<20)))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnsafe, err)
		}
		if err := u.unpackMember(header, reader, to); err != nil {
			return err
		}
	}
}

// withoutDots returns a path without the parts ".", which some packages have: package/./dist/index.js.
func withoutDots(name string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(name, "/"), func(part string) bool { return part == "." }), "/")
}

func (u *unpacker) unpackMember(header *tar.Header, from io.Reader, to string) error {
	switch header.Typeflag {
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	case tar.TypeReg:
	default:
		u.note("%s: %s is left out: it is not a regular file", to, header.Name)
		return nil
	}
	_, name, inFolder := strings.Cut(withoutDots(header.Name), "/") // mostly "package/"
	if err := checkName(name); err != nil || !inFolder {
		return fmt.Errorf("%w: the file name %.100q", ErrUnsafe, header.Name)
	}
	err := u.write(path.Join(to, name), header.Mode&0o100 != 0, from)
	if errors.Is(err, errExists) {
		return nil
	}
	return err
}
