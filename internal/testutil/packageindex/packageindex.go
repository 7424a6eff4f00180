// Package packageindex has indexes of packages for tests, as pip and npm read them: services over TLS, with the authority of package tlstest.
package packageindex

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"

	"sallyport/internal/testutil/tlstest"
)

// wheel is a package of Python with one module that has a name and nothing else.
func wheel(t testing.TB, name string) []byte {
	t.Helper()
	var out, record bytes.Buffer
	w := zip.NewWriter(&out)
	info := name + "-1.0.dist-info/"
	add := func(file, text string) {
		f, err := w.Create(file)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(text))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", file, base64.RawURLEncoding.EncodeToString(sum[:]), len(text))
	}
	add(name+".py", "NAME = '"+name+" is here'\n")
	add(info+"METADATA", "Metadata-Version: 2.1\nName: "+name+"\nVersion: 1.0\n\n")
	add(info+"WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
	add(info+"RECORD", record.String()+info+"RECORD,,\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Serve returns the URL of an index (PEP 503) with version 1.0 of some packages. Its package resets breaks connections.
func Serve(t testing.TB, names ...string) string {
	t.Helper()
	mux := http.NewServeMux()
	for _, name := range names {
		data := wheel(t, name)
		sum := sha256.Sum256(data)
		file := name + "-1.0-py3-none-any.whl"
		mux.HandleFunc("/simple/"+name+"/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `<!DOCTYPE html><html><body><a href="/files/%s#sha256=%s">%s</a></body></html>`, file, hex.EncodeToString(sum[:]), file)
		})
		mux.HandleFunc("/files/"+file, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	}
	mux.HandleFunc("/simple/resets/", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	return tlstest.NewServer(t, mux).URL + "/simple/"
}
