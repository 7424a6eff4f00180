package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"sallyport/internal/packed"
)

//go:embed static
var staticFiles embed.FS

// asset is a file that pages need. Its address has its digest, so that a browser keeps it for ever.
type asset struct {
	path, kind string
	data       []byte
	packed     func() []byte // data as gzip has it
}

// assets are all of them, by name and by address.
var assets = sync.OnceValue(func() map[string]asset {
	all := map[string]asset{}
	entries, err := fs.ReadDir(staticFiles, "static")
	for _, e := range entries {
		var data []byte
		if data, err = staticFiles.ReadFile("static/" + e.Name()); err != nil {
			break
		}
		data = packed.Read(data)
		sum := sha256.Sum256(data)
		ext := path.Ext(e.Name())
		a := asset{path: "/ui/static/" + strings.TrimSuffix(e.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext, kind: kinds[ext], data: data, packed: sync.OnceValue(func() []byte { return compress(data) })}
		all[e.Name()], all[a.path] = a, a
	}
	if err != nil {
		panic(err) // they are part of the program
	}
	return all
})

var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

func serveStatic(w http.ResponseWriter, r *http.Request) {
	a, ok := assets()[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	data := a.data
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		data = a.packed()
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(data)
}

// compress returns data as gzip has it.
func compress(data []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err) // it writes to memory
	}
	return b.Bytes()
}
