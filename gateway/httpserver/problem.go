package httpserver

import (
	"encoding/json"
	"net/http"

	"sallyport/internal/tool"
)

// refusal is why a request is refused. Its texts are for the caller and reveal no internals.
type refusal struct {
	status int
	detail string
	hint   string
	kind   tool.Kind // "" is denied
	// challenge is the value of WWW-Authenticate.
	challenge string
}

// refuse answers with a problem document (RFC 9457), as the API does.
func refuse(w http.ResponseWriter, no refusal) {
	if no.kind == "" {
		no.kind = tool.Denied
	}
	header := w.Header()
	if no.challenge != "" {
		header.Set("WWW-Authenticate", no.challenge)
	}
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	data, err := json.Marshal(struct {
		Type   string    `json:"type"`
		Title  string    `json:"title"`
		Status int       `json:"status"`
		Detail string    `json:"detail"`
		Hint   string    `json:"hint,omitempty"`
		Kind   tool.Kind `json:"kind"`
	}{"about:blank", http.StatusText(no.status), no.status, no.detail, no.hint, no.kind})
	if err != nil { // a struct of texts
		data = []byte("{}")
	}
	w.WriteHeader(no.status)
	_, _ = w.Write(append(data, '\n'))
}
