package httpapi

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Problem is the body of every error response (RFC 9457, application/problem+json).
type Problem struct {
	// Type is about:blank: see Status, and Kind for more detail.
	Type string `json:"type"`
	// Title is the text of the status, Status its number.
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what is wrong with this request, Hint how to fix it.
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
	// Instance is the path of the request.
	Instance string `json:"instance,omitempty"`
	// Kind is the kind of the error: invalid, not_found, denied, limit, busy, timeout, canceled, upstream, failed, internal.
	Kind tool.Kind `json:"kind"`
}

// statusOf returns the HTTP status of an error, by default that of its kind.
func statusOf(err error) int {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return http.StatusRequestEntityTooLarge
	}
	if errors.Is(err, errNotReady) {
		return http.StatusServiceUnavailable
	}
	if errors.Is(err, errMediaType) {
		return http.StatusUnsupportedMediaType
	}
	if status := fileStatus(err); status != 0 {
		return status
	}
	return tool.AsError(err).Kind.Status()
}

// problem returns the body of an error response.
func problem(r *http.Request, status int, e *tool.Error) Problem {
	return Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: e.Message, Hint: e.Hint, Instance: sanitize.Line(r.URL.Path, 200), Kind: e.Kind}
}

func writeProblem(w http.ResponseWriter, r *http.Request, status int, e *tool.Error) {
	data, err := json.Marshal(problem(r, status, e))
	if err != nil { // a struct of texts
		data = []byte("{}")
	}
	if e.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.After.Seconds()))))
	}
	write(w, status, "application/problem+json", data)
}
