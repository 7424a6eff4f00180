// Package stream changes what the SDK's server writes to clients.
package stream

import (
	"io"
	"net/http"
)

// NotFound turns 403 into 404 for a request for another principal's session, as MCP specifies for unknown sessions: the SDK's 403, which
// has no other cause here, would reveal that the session exists.
type NotFound struct {
	http.ResponseWriter
	refused bool
}

// WriteHeader implements [http.ResponseWriter].
func (a *NotFound) WriteHeader(status int) {
	if a.refused = status == http.StatusForbidden; !a.refused {
		a.ResponseWriter.WriteHeader(status)
		return
	}
	a.Header().Del("Content-Length")
	a.ResponseWriter.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(a.ResponseWriter, "session not found\n") // as http.Error writes it
}

// Write implements [http.ResponseWriter].
func (a *NotFound) Write(p []byte) (int, error) {
	if a.refused {
		return len(p), nil
	}
	return a.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher].
func (a *NotFound) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }

// Unwrap is for [http.ResponseController].
func (a *NotFound) Unwrap() http.ResponseWriter { return a.ResponseWriter }
