package httpserver

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// patience is how long a client may take to send the body of a request, and how long it may let each part of an
// answer wait.
const patience = 30 * time.Second

// bounded refuses bodies that say that they are larger than limit bytes before a byte of them is read, lets no more
// than that through of others, and cuts off who sends too slowly.
func (f *Front) bounded(limit int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > limit {
			w.Header().Set("Connection", "close") // what is on its way is not read
			refuse(w, refusal{status: http.StatusRequestEntityTooLarge, detail: "the body is larger than http.body allows", kind: "invalid"})
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			control := http.NewResponseController(w)
			if control.SetReadDeadline(time.Now().Add(f.patience)) == nil { // a recorder in a test has none
				// When all is read the deadline must go: the server then reads on to notice a client that has gone.
				r.Body = &patient{ReadCloser: r.Body, clear: sync.OnceFunc(func() { _ = control.SetReadDeadline(time.Time{}) })}
			}
			r.Body = http.MaxBytesReader(innermost(w), r.Body, limit)
		}
		next.ServeHTTP(w, r)
	})
}

// innermost is the server's own answer, which [http.MaxBytesReader] tells that the rest of a body is not worth waiting for.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

// patient is a body with a deadline, which ends with the body.
type patient struct {
	io.ReadCloser
	clear func()
}

// Read implements [io.Reader].
func (p *patient) Read(data []byte) (int, error) {
	n, err := p.ReadCloser.Read(data)
	if errors.Is(err, io.EOF) {
		p.clear()
	}
	return n, err
}
