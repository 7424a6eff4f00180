package registrytest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/testutil/tlstest"
)

// module is a version of a package.
type module struct {
	version string
	about   map[string]any
	pack    func() ([]byte, error)
}

// Modules returns a registry of npm with the packages of a node_modules folder and of those below it.
func Modules(t *testing.T, dir string) *httptest.Server {
	t.Helper()
	const archive = "/-/"
	all := map[string][]module{}
	if err := findModules(dir, all); err != nil {
		t.Fatal(err)
	}
	return tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/"))
		name, file, isArchive := strings.Cut(path, archive)
		asked := ""
		if at := strings.LastIndexByte(name, '/'); !isArchive && all[name] == nil && at > 0 {
			name, asked = name[:at], name[at+1:]
		}
		versions, latest := map[string]any{}, ""
		for _, one := range all[name] {
			packed, failed := one.pack()
			err = errors.Join(err, failed)
			if isArchive && file == one.version+".tgz" {
				_, _ = w.Write(packed)
				return
			}
			sum := sha512.Sum512(packed)
			about := maps.Clone(one.about)
			about["dist"] = map[string]string{"tarball": "https://" + r.Host + "/" + name + archive + one.version + ".tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
			versions[one.version], latest = about, cmp.Or(latest, one.version)
		}
		if err != nil || len(versions) == 0 || isArchive {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if asked == "latest" {
			asked = latest
		}
		if one, ok := versions[asked]; ok {
			_ = json.NewEncoder(w).Encode(one)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "dist-tags": map[string]string{"latest": latest}, "versions": versions})
	}))
}

// findModules adds the packages of a node_modules folder, and of those in its packages.
func findModules(dir string, all map[string][]module) error {
	folders, err := filepath.Glob(filepath.Join(dir, "*"))
	scoped, _ := filepath.Glob(filepath.Join(dir, "@*", "*"))
	for _, folder := range append(folders, scoped...) {
		name, version, about := manifest(folder)
		if version == "" {
			continue
		}
		all[name] = append(all[name], module{version, about, sync.OnceValues(func() ([]byte, error) { return pack(folder) })})
		err = errors.Join(err, findModules(filepath.Join(folder, "node_modules"), all))
	}
	return err
}

// manifest reads the package.json of a package; the version is "" if there is none.
func manifest(folder string) (name, version string, about map[string]any) {
	data, err := os.ReadFile(filepath.Join(folder, "package.json"))
	if err != nil || json.Unmarshal(data, &about) != nil {
		return "", "", nil
	}
	name, _ = about["name"].(string)
	version, _ = about["version"].(string)
	return name, version, about
}

// pack returns the archive of a package, which is the same each time.
func pack(folder string) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: "package/" + filepath.ToSlash(name), Mode: 0o755, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", folder, err)
	}
	err = errors.Join(w.Close(), zipped.Close())
	return out.Bytes(), err
}
