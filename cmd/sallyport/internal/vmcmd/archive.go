package vmcmd

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sallyport/internal/tool"
)

// findArchive returns the archive for Linux that belongs to this program: given by the user, or next to the program.
func findArchive(given, version, arch string) (string, error) {
	if given != "" {
		return given, nil
	}
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	for _, dir := range placesOf(program) {
		for _, name := range []string{version, "*"} {
			found, err := filepath.Glob(filepath.Join(dir, "sallyport-"+name+"-linux-"+arch+".tar.gz"))
			if err == nil && len(found) == 1 {
				return found[0], nil
			}
		}
	}
	return "", &tool.Error{
		Kind: tool.NotFound, Message: fmt.Sprintf("no archive for linux/%s next to %s", arch, program),
		Hint: "name the one of this version: sallyport vm up --archive sallyport-" + version + "-linux-" + arch + ".tar.gz (`make dist` builds it)",
	}
}

// copyPrograms writes the programs of an archive to w as a tar: bin/sallyport and bin/runsc only.
func copyPrograms(w io.Writer, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", archive, err)
	}
	out, missing := tar.NewWriter(w), map[string]bool{"bin/sallyport": true, "bin/runsc": true}
	for in := tar.NewReader(plain); len(missing) > 0; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s is not an archive of sallyport for Linux: it lacks bin/sallyport or bin/runsc", archive)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", archive, err)
		}
		_, name, _ := strings.Cut(path.Clean(header.Name), "/")
		if header.Typeflag != tar.TypeReg || !missing[name] {
			continue
		}
		delete(missing, name)
		if err := copyProgram(out, in, name, header.Size); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	return out.Close()
}

func copyProgram(out *tar.Writer, in io.Reader, name string, size int64) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: size, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := io.CopyN(out, in, size)
	return err
}
