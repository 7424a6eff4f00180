package image

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"sallyport/internal/chroot"
)

// Program is what an image runs by its own description, which is untrusted.
type Program struct {
	// Entrypoint and Cmd are the words of the command: Cmd are those that arguments replace.
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	// Env are its variables, each NAME=VALUE.
	Env []string `json:"env,omitempty"`
	// Dir is the working directory, a folder inside.
	Dir string `json:"dir"`
	// UID and GID are its user.
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
	// Volumes are empty folders inside that it expects to write to.
	Volumes []string `json:"volumes,omitempty"`
	// Problem is the reason why it cannot be run as described; "" is none.
	Problem string `json:"problem,omitempty"`
}

// The bounds of a description.
const (
	maxWords      = 1000
	maxWordsBytes = 128 << 10
	maxVolumes    = 16
	maxAccounts   = 1 << 20
)

// program reads the description of an image that is unpacked, and makes its working directory and volumes if they are missing.
func (u *unpacker) program(c v1.Config) Program {
	u.layerPaths, u.folders = map[string]bool{}, map[string]string{}
	p := Program{Entrypoint: c.Entrypoint, Cmd: c.Cmd, Env: c.Env, Dir: path.Clean("/" + c.WorkingDir), Volumes: slices.Sorted(maps.Keys(c.Volumes))}
	err := checkWords(slices.Concat(p.Entrypoint, p.Cmd, p.Env, p.Volumes, []string{c.WorkingDir, c.User}))
	if err == nil && len(p.Volumes) > maxVolumes {
		err = fmt.Errorf("it has more than %d volumes", maxVolumes)
	}
	if err != nil {
		return Program{Dir: "/", Problem: err.Error()}
	}
	for i, at := range p.Volumes {
		p.Volumes[i] = path.Clean("/" + at)
		err = errors.Join(err, u.makeFolder(p.Volumes[i]))
	}
	p.Volumes = slices.DeleteFunc(p.Volumes, func(at string) bool { return !u.isEmpty(at) })
	if err = errors.Join(err, u.makeFolder(p.Dir)); err == nil {
		p.UID, p.GID, err = userOf(u.root, c.User)
	}
	if err != nil {
		p.Problem = err.Error()
	}
	return p
}

func checkWords(all []string) error {
	bytes := 0
	for _, text := range all {
		if bytes += len(text); strings.ContainsRune(text, 0) {
			return errors.New("its description has a NUL byte")
		}
	}
	if len(all) > maxWords || bytes > maxWordsBytes {
		return errors.New("its description of its program is too long")
	}
	return nil
}

// makeFolder makes a folder if it is missing.
func (u *unpacker) makeFolder(at string) error {
	name, err := cleanName(at)
	if err == nil {
		_, err = u.folder(name)
	}
	if err != nil {
		return fmt.Errorf("its folder %.200q: %w", at, err)
	}
	return nil
}

// isEmpty reports whether a path is an empty folder, without a link in it.
func (u *unpacker) isEmpty(at string) bool {
	real, err := chroot.Resolve(u.root, at)
	if err != nil || "/"+real != at {
		return false
	}
	dir, err := u.root.Open(real)
	if err != nil {
		return false
	}
	defer func() { _ = dir.Close() }()
	_, err = dir.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// userOf returns the user of a description: UID, UID:GID, or names of /etc/passwd and /etc/group; "" is root.
func userOf(root *os.Root, text string) (uid, gid uint32, err error) {
	user, group, hasGroup := strings.Cut(text, ":")
	uid, gid, err = account(root, "etc/passwd", cmp.Or(user, "0"))
	if err == nil && hasGroup {
		gid, _, err = account(root, "etc/group", group)
	}
	return uid, gid, err
}

// account returns the numbers in the third and fourth column of an account by its name or number. One that is not in the file
// has the number itself and 0.
func account(root *os.Root, file, of string) (id, second uint32, err error) {
	number, notNumber := strconv.ParseUint(of, 10, 31)
	for fields := range accounts(root, file) {
		found, err := strconv.ParseUint(fields[2], 10, 31)
		if err == nil && (fields[0] == of || notNumber == nil && found == number) {
			if len(fields) > 3 {
				number, _ = strconv.ParseUint(fields[3], 10, 31)
			}
			return uint32(found), uint32(number), nil
		}
	}
	if notNumber != nil {
		return 0, 0, fmt.Errorf("its user %.60q is not in its /%s", of, file)
	}
	return uint32(number), 0, nil
}

// accounts returns the columns of each account of a file, none if it cannot be read.
func accounts(root *os.Root, file string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		at, err := chroot.Resolve(root, file)
		if err != nil {
			return
		}
		if info, err := root.Lstat(at); err != nil || !info.Mode().IsRegular() {
			return
		}
		f, err := root.Open(at)
		if err != nil {
			return
		}
		defer func() { _ = f.Close() }()
		lines := bufio.NewScanner(io.LimitReader(f, maxAccounts))
		for lines.Scan() {
			if fields := strings.Split(lines.Text(), ":"); len(fields) > 2 && !yield(fields) {
				return
			}
		}
	}
}

// nameFiles are files that sandboxes with names of hosts mount their own over.
var nameFiles = []string{"etc/hosts", "etc/resolv.conf"}

// makeNameFiles makes the files if they are missing, or are links. An image whose /etc is a link gets none.
func (u *unpacker) makeNameFiles() error {
	if dir, err := u.folder("etc"); err != nil || dir != "etc" {
		return nil //nolint:nilerr // its programs know no names of hosts then
	}
	for _, name := range nameFiles {
		info, err := u.root.Lstat(name)
		if err == nil && info.Mode().IsRegular() {
			continue
		}
		if err == nil {
			err = u.remove(name)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = u.root.WriteFile(name, nil, 0o644)
		}
		if err = errors.Join(err, u.root.Chmod(name, 0o644)); err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
	}
	return nil
}
