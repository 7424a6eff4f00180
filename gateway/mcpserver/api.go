package mcpserver

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"sallyport/internal/tool"
)

// The JSON API stands beside MCP, behind the same guards and tokens. It can answer what waits for a person, so it is
// there only where clients have tokens: a program on this machine must not approve for its user.

const (
	apiPath = "/api/"
	// maxAPI is how large the body of a request to the API may be, in bytes.
	maxAPI = 1 << 20
)

// api serves the API at its path, to whoever has a token.
func (s *Site) api(b *bearer, api http.Handler) http.Handler {
	if b == nil {
		return worded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the API needs tokens: http.tokens in upstreams.yaml; without them use the sallyport command on this machine", http.StatusForbidden)
		}))
	}
	inner := http.StripPrefix(strings.TrimSuffix(apiPath, "/"), api)
	return worded(b.around(whole(maxAPI, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if own, ok := w.(*wording); ok {
			own.passed = true
		}
		principal := ""
		if info := auth.TokenInfoFromContext(r.Context()); info != nil {
			principal = info.UserID
		}
		ctx := tool.WithRemote(tool.WithPrincipal(r.Context(), principal))
		if s.operates(principal) {
			ctx = tool.WithOperator(ctx, principal)
		}
		inner.ServeHTTP(w, r.WithContext(ctx))
	}))))
}

// operates reports whether a principal is among the operators of the settings, by the name of a token, or as oauth:SUBJECT.
func (s *Site) operates(principal string) bool {
	name, isToken := strings.CutPrefix(principal, "token:")
	if _, taken := s.settings.Tokens[name]; taken != isToken {
		return false // a token may be called oauth:ann, and is not she
	}
	return slices.Contains(s.settings.Operators, name) && (isToken || strings.HasPrefix(name, "oauth:"))
}

// worded makes problem documents (RFC 9457) of what the guards before the API refuse in plain words.
func worded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&wording{ResponseWriter: w}, r) })
}

type wording struct {
	http.ResponseWriter
	// passed says that the API itself answers; refused is the status of what did not get to it.
	passed  bool
	refused int
}

// Unwrap is for [http.ResponseController].
func (w *wording) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (w *wording) WriteHeader(status int) {
	if !w.passed && status >= 400 {
		w.refused = status
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Del("Content-Length")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *wording) Write(text []byte) (int, error) {
	if w.refused == 0 {
		return w.ResponseWriter.Write(text)
	}
	data, err := json.Marshal(map[string]any{"title": http.StatusText(w.refused), "status": w.refused, "detail": strings.TrimSpace(string(text)), "kind": "denied"})
	if err == nil {
		_, err = w.ResponseWriter.Write(data)
	}
	return len(text), err
}

// ownOrigin reports whether an Origin is that of the host that was asked.
func ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, host)
}
