package upstreamtest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// wrapper answers a request in its own way, or lets next answer it.
type wrapper func(s *site, w http.ResponseWriter, r *http.Request, next http.Handler)

// site is the server over HTTP; see [Handler].
type site struct {
	trap  trap
	state *state
	wrap  wrapper
	other string
}

// Handler is the server over streamable HTTP in one of [HTTPModes]. other is the
// base URL of another origin, for the modes that lead there.
func Handler(mode, other string) (http.Handler, error) {
	wrap, ok := httpTraps()[mode]
	trap, also := sharedTraps()[mode]
	if !ok && !also {
		return nil, fmt.Errorf("no mode %q", mode)
	}
	return &site{trap: trap, state: &state{}, wrap: wrap, other: other}, nil
}

// sharedTraps are those of stdio that are as bad over HTTP.
func sharedTraps() map[string]trap {
	traps := map[string]trap{}
	for _, some := range []map[string]trap{listTraps(), schemaTraps(), resultTraps()} {
		maps.Copy(traps, some)
	}
	return traps
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // only then the end of the connection is seen
	r.Body = io.NopCloser(bytes.NewReader(body))
	good := http.HandlerFunc(s.good)
	if s.wrap == nil {
		good(w, r)
		return
	}
	s.wrap(s, w, r, good)
}

// good answers a POST with an event for each message, and nothing else.
func (s *site) good(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	var req request
	if body, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(body, &req) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	if len(req.ID) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if req.Method == "initialize" {
		w.Header().Set("Mcp-Session-Id", "session-"+strconv.Itoa(s.state.next()))
	}
	answer := &server{trap: s.trap, state: s.state, ctx: r.Context(), raw: func(data []byte) {
		_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", bytes.TrimSuffix(data, []byte("\n")))
	}}
	answer.handle(req)
}

// methodOf reads a request's method, and leaves its body to be read again.
func methodOf(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req request
	_ = json.Unmarshal(body, &req)
	return req.Method
}

// onCall is a wrapper that acts on tools/call only.
func onCall(do func(s *site, w http.ResponseWriter, r *http.Request)) wrapper {
	return func(s *site, w http.ResponseWriter, r *http.Request, next http.Handler) {
		if methodOf(r) == "tools/call" {
			do(s, w, r)
			return
		}
		next.ServeHTTP(w, r)
	}
}

func status(code int, kind, body string) wrapper {
	return onCall(func(_ *site, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})
}

// httpTraps are wrong as web servers.
func httpTraps() map[string]wrapper {
	return map[string]wrapper{
		Good:             nil,
		"http-500":       status(500, "text/plain", "boom \x1b[31m at /srv/app.js:1"),
		"http-429":       status(429, "application/json", `{"error":"slow down"}`),
		"http-html":      status(200, "text/html", "<html><script>alert(1)</script>login</html>"),
		"http-empty":     status(200, "application/json", ""),
		"http-truncated": status(200, "application/json", `{"jsonrpc":"2.0","id":`),
		"http-500-huge":  status(500, "text/plain", strings.Repeat("e", 20<<20)),
		"http-huge-header": onCall(func(_ *site, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Huge", strings.Repeat("h", 20<<20))
		}),
		"http-redirect-away": onCall(func(s *site, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, s.other+"/canary", http.StatusTemporaryRedirect)
		}),
		"http-redirect-loop": onCall(func(_ *site, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		}),
		"http-gzip-bomb": onCall(gzipBomb),
		"http-hang": onCall(func(_ *site, _ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}),
		"http-body-hangs": onCall(func(_ *site, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": begun\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}),
		"http-drip": onCall(drip),
		"http-endless-event": onCall(func(_ *site, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: ")
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
					return
				}
			}
		}),
		"http-stream-ends": onCall(func(_ *site, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": nothing\n\n")
		}),
		"http-reset": onCall(func(*site, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"http-session-missing": func(s *site, w http.ResponseWriter, r *http.Request, next http.Handler) {
			if methodOf(r) == "tools/call" && r.Header.Get("Mcp-Session-Id") == "session-1" {
				http.Error(w, "no such session", http.StatusNotFound)
				return
			}
			next.ServeHTTP(w, r)
		},
		"http-session-always-missing": status(404, "text/plain", "no such session"),
		"http-sse-elsewhere":          sseElsewhere,
		"http-all-hang":               func(_ *site, _ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() },
		"http-unauthorized": func(s *site, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.other+`/canary"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
		},
	}
}

// gzipBomb sends 1 GiB of spaces in 1 MiB.
func gzipBomb(_ *site, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	for range 1024 {
		if _, err := z.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil || r.Context().Err() != nil {
			return
		}
	}
	_ = z.Close()
}

// drip sends comments for ever.
func drip(_ *site, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, ": still here\n\n"); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		time.Sleep(20 * time.Millisecond)
	}
}

// sseElsewhere refuses the streamable transport, and names an endpoint of
// another origin for the old one.
func sseElsewhere(s *site, w http.ResponseWriter, r *http.Request, _ http.Handler) {
	if r.Method != http.MethodGet {
		http.Error(w, "not here", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "event: endpoint\ndata: %s/canary\n\n", s.other)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}
