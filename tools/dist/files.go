package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is a file of a package: its name there, its mode, and its contents or where they are. A name that ends with a
// slash is a folder; link makes it a symbolic link.
type file struct {
	name string
	mode int64
	data []byte
	path string
	link string
	uid  int
}

// contents returns the bytes of a file.
func (f file) contents() ([]byte, error) {
	if f.path == "" {
		return f.data, nil
	}
	return os.ReadFile(f.path)
}

// programs returns the programs of a target in a folder.
func (r *release) programs(t target, folder string) []file {
	list := []file{{name: folder + filepath.Base(r.binary(t, "sallyport")), mode: 0o755, path: r.binary(t, "sallyport")}}
	if t.system == "linux" {
		list = append(list, file{name: folder + "runsc", mode: 0o755, path: r.binary(t, "runsc")})
	}
	return list
}

// manuals returns the manual pages and completions below share, as make install lays them.
func (r *release) manuals(share string) (list []file, err error) {
	pages, err := filepath.Glob(filepath.Join(r.work, "man", "*.1"))
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		list = append(list, file{name: share + "man/man1/" + filepath.Base(page), mode: 0o644, path: page})
	}
	for shell, name := range map[string]string{
		"bash": "bash-completion/completions/sallyport", "zsh": "zsh/site-functions/_sallyport", "fish": "fish/vendor_completions.d/sallyport.fish",
	} {
		list = append(list, file{name: share + name, mode: 0o644, path: filepath.Join(r.work, shell)})
	}
	slices.SortFunc(list, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

// writeTar writes the files to w, all with one time and one owner.
func writeTar(w io.Writer, at time.Time, files []file) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		data, err := f.contents()
		if err != nil {
			return err
		}
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(data)), ModTime: at, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg, Uid: f.uid, Gid: f.uid, Linkname: f.link}
		switch {
		case f.link != "":
			h.Typeflag = tar.TypeSymlink
		case strings.HasSuffix(f.name, "/"):
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("add %s: %w", f.name, err)
		}
		if _, err := t.Write(data); err != nil {
			return err
		}
	}
	return t.Close()
}

// level is the level of compression.
func (r *release) level() int {
	if r.fast {
		return gzip.BestSpeed
	}
	return gzip.BestCompression
}

// writeTarGz writes the files to a compressed archive.
func (r *release) writeTarGz(path string, files []file) error {
	return create(path, func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, r.level())
		if err != nil {
			return err
		}
		if err := writeTar(z, r.date, files); err != nil {
			return err
		}
		return z.Close()
	})
}

func writeZip(path string, at time.Time, files []file) error {
	return create(path, func(w io.Writer) error {
		z := zip.NewWriter(w)
		for _, f := range files {
			if err := addZip(z, at, f); err != nil {
				return err
			}
		}
		return z.Close()
	})
}

func addZip(z *zip.Writer, at time.Time, f file) error {
	data, err := f.contents()
	if err != nil {
		return err
	}
	h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
	h.SetMode(os.FileMode(f.mode))
	w, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// create makes a file that write fills.
func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// linuxArchive returns the archive for Linux that `sallyport vm up` installs in a virtual machine: other systems have it
// next to the program. Without that target it is not there, and people name one with --archive.
func (r *release) linuxArchive(t target, folder string) []file {
	name := fmt.Sprintf("sallyport-%s-linux-%s.tar.gz", r.version, t.arch)
	path := filepath.Join(r.out, name)
	if _, err := os.Stat(path); t.system == "linux" || err != nil {
		return nil
	}
	return []file{{name: folder + name, mode: 0o644, path: path}}
}

// archive makes the tar.gz of a target, or the zip for Windows.
func (r *release) archive(t target) error {
	folder := fmt.Sprintf("sallyport-%s-%s-%s/", r.version, t.system, t.arch)
	files := r.programs(t, folder+"bin/")
	manuals, err := r.manuals(folder + "share/")
	if err != nil {
		return err
	}
	for _, name := range []string{"README.md", "upstreams.yaml"} {
		files = append(files, file{name: folder + name, mode: 0o644, path: filepath.Join(r.root, name)})
	}
	files = append(files, r.linuxArchive(t, folder+"share/sallyport/")...)
	path := filepath.Join(r.out, strings.TrimSuffix(folder, "/"))
	if t.system == "windows" {
		files = append(files, file{name: folder + "sallyport.ps1", mode: 0o644, path: filepath.Join(r.work, "powershell")})
		return writeZip(path+".zip", r.date, files)
	}
	return r.writeTarGz(path+".tar.gz", append(files, manuals...))
}
