package packageindex

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"sallyport/internal/testutil/tlstest"
)

// ServeNPM returns the URL of a registry of npm with version 1.0.0 of some packages.
func ServeNPM(t testing.TB, names ...string) string {
	t.Helper()
	mux := http.NewServeMux()
	server := tlstest.NewServer(t, mux)
	for _, name := range names {
		data := tarball(t, name)
		sum := sha512.Sum512(data)
		about := map[string]any{"name": name, "version": "1.0.0", "main": "index.js", "dist": map[string]any{
			"tarball": server.URL + "/" + name + "/-/x.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}}
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "dist-tags": map[string]any{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": about}})
		})
		mux.HandleFunc("/"+name+"/-/x.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	}
	return server.URL
}

// tarball is a package of npm that exports one text.
func tarball(t testing.TB, name string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for file, text := range map[string]string{
		"package/package.json": `{"name": "` + name + `", "version": "1.0.0", "main": "index.js"}`,
		"package/index.js":     `module.exports = "` + name + ` is here"` + "\n",
	} {
		err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
