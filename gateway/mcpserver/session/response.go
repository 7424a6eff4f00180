package session

import (
	"bytes"
	"net/http"
)

// watched is a response with a known status.
type watched struct {
	http.ResponseWriter
	before func(header http.Header, status int) // nil, or called before the status is sent
	sent   int
}

// WriteHeader implements [http.ResponseWriter].
func (w *watched) WriteHeader(status int) {
	if w.sent == 0 {
		if w.sent = status; w.before != nil {
			w.before(w.Header(), status)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *watched) Write(p []byte) (int, error) {
	if w.sent == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher].
func (w *watched) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap is for [http.ResponseController].
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// refusal is a response that is held back if it refuses the request with some statuses.
type refusal struct {
	http.ResponseWriter
	holds  func(status int) bool
	status int // that is held back; 0 for none
	sent   int
	body   bytes.Buffer
}

// WriteHeader implements [http.ResponseWriter].
func (a *refusal) WriteHeader(status int) {
	switch {
	case a.sent > 0 || a.status > 0:
	case a.holds(status):
		a.status = status
	default:
		a.sent = status
		a.ResponseWriter.WriteHeader(status)
	}
}

// Write implements [http.ResponseWriter].
func (a *refusal) Write(p []byte) (int, error) {
	if a.status > 0 {
		return a.body.Write(p)
	}
	if a.sent == 0 {
		a.sent = http.StatusOK
	}
	return a.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher].
func (a *refusal) Flush() {
	if a.status == 0 {
		_ = http.NewResponseController(a.ResponseWriter).Flush()
	}
}

// Unwrap is for [http.ResponseController].
func (a *refusal) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// release sends what was held back.
func (a *refusal) release() {
	a.ResponseWriter.WriteHeader(a.status)
	_, _ = a.ResponseWriter.Write(a.body.Bytes())
}

// forget makes the response as if nothing had been written.
func (a *refusal) forget() {
	for _, name := range []string{"Content-Type", "Content-Length", "X-Content-Type-Options"} { // of http.Error
		a.Header().Del(name)
	}
}

// discard is a response that is not sent.
type discard struct{ header http.Header }

// Header implements [http.ResponseWriter].
func (d discard) Header() http.Header { return d.header }

// Write implements [http.ResponseWriter].
func (discard) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements [http.ResponseWriter].
func (discard) WriteHeader(int) {}

// Flush implements [http.Flusher].
func (discard) Flush() {}
