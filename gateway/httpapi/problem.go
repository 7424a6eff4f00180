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

// Problem is the body of every answer that is no success (RFC 9457, application/problem+json).
type Problem struct {
	// Type is about:blank: the status says what sort of problem it is, and Kind more closely.
	Type string `json:"type"`
	// Title is the status in words, Status its number.
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what is wrong with this request, Hint what would be right.
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
	// Instance is the path that was asked for.
	Instance string `json:"instance,omitempty"`
	// Kind is that of the error: invalid, not_found, denied, limit, busy, timeout, canceled, upstream, failed, internal.
	Kind tool.Kind `json:"kind"`
}

// statusOf is the status of an error: what only HTTP has, and else that of its kind.
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

// problem is what went wrong, as a body, and its status.
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
