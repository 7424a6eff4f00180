package httpserver

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// clientTimeout is the timeout for a client to send the body of a request, and to read each part of a response.
const clientTimeout = 30 * time.Second

// limitBody limits request bodies to limit bytes. A larger Content-Length is refused before the body is read. Clients
// that send too slowly are disconnected.
func (f *Server) limitBody(limit int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > limit {
			w.Header().Set("Connection", "close") // do not read the body
			refuse(w, refusal{status: http.StatusRequestEntityTooLarge, detail: "the body is larger than http.body allows", kind: "invalid"})
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			control := http.NewResponseController(w)
			if control.SetReadDeadline(time.Now().Add(f.clientTimeout)) == nil { // a recorder in a test has none
				// Clear the deadline after the body: the server keeps reading to detect a disconnected client.
				r.Body = &deadlineReader{ReadCloser: r.Body, clear: sync.OnceFunc(func() { _ = control.SetReadDeadline(time.Time{}) })}
			}
			r.Body = http.MaxBytesReader(innermost(w), r.Body, limit)
		}
		next.ServeHTTP(w, r)
	})
}

// innermost returns the server's own response writer, which [http.MaxBytesReader] needs to close the connection.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

// deadlineReader is a body that clears its read deadline at the end.
type deadlineReader struct {
	io.ReadCloser
	clear func()
}

// Read implements [io.Reader].
func (p *deadlineReader) Read(data []byte) (int, error) {
	n, err := p.ReadCloser.Read(data)
	if errors.Is(err, io.EOF) {
		p.clear()
	}
	return n, err
}
