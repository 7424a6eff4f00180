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

// wrapper handles a request itself, or calls next.
type wrapper func(s *site, w http.ResponseWriter, r *http.Request, next http.Handler)

// site is the server over HTTP; see [Handler].
type site struct {
	trap  trap
	state *state
	wrap  wrapper
	other string
	// streams are the open streams of the HTTP with SSE modes.
	streams streams
}

// Handler returns the server over streamable HTTP in one of [HTTPModes]. other is the
// base URL of another origin, for the modes that refer to it.
func Handler(mode, other string) (http.Handler, error) {
	wrap, ok := httpTraps()[mode]
	trap, also := sharedTraps()[mode]
	if !ok && !also {
		return nil, fmt.Errorf("no mode %q", mode)
	}
	return &site{trap: trap, state: &state{}, wrap: wrap, other: other}, nil
}

// sharedTraps returns the stdio traps that also apply over HTTP.
func sharedTraps() map[string]trap {
	traps := map[string]trap{}
	for _, some := range []map[string]trap{messageTraps(), listTraps(), schemaTraps(), resultTraps()} {
		maps.Copy(traps, some)
	}
	silence, floods := silenceTraps(), floodTraps()
	for _, name := range []string{"hang-initialize", "hang-list", "hang-call"} {
		traps[name] = silence[name]
	}
	for _, name := range []string{"flood-notifications", "flood-list-changed", "flood-unknown", "flood-progress"} {
		traps[name] = floods[name]
	}
	return traps
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // the end of the connection is detected only after that
	r.Body = io.NopCloser(bytes.NewReader(body))
	good := http.HandlerFunc(s.good)
	if s.wrap == nil {
		good(w, r)
		return
	}
	s.wrap(s, w, r, good)
}

// good responds to a POST with an event for each message.
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

// methodOf returns a request's method; its body can be read again.
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

// httpTraps returns all modes that exist only over HTTP.
func httpTraps() map[string]wrapper {
	traps := map[string]wrapper{Good: nil}
	for _, some := range []map[string]wrapper{answerTraps(), siteTraps(), oldTraps()} {
		maps.Copy(traps, some)
	}
	return traps
}

// answerTraps return invalid HTTP responses to a call.
func answerTraps() map[string]wrapper {
	return map[string]wrapper{
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
		"http-drip": onCall(func(_ *site, w http.ResponseWriter, r *http.Request) { drip(w, r) }),
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
		"http-reset":           onCall(func(*site, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"http-endless-headers": onCall(func(_ *site, w http.ResponseWriter, _ *http.Request) { headers(w, strings.Repeat("x", 1<<16), 0) }),
		"http-slow-headers":    onCall(func(_ *site, w http.ResponseWriter, _ *http.Request) { headers(w, "x", 20*time.Millisecond) }),
		"http-slow-body": onCall(func(_ *site, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			trickle(w, r, " ", 20*time.Millisecond)
		}),
		"http-json": onCall(func(_ *site, w http.ResponseWriter, r *http.Request) {
			asJSON(w, r, `"result":{"content":[{"type":"text","text":"plain"}]}`)
		}),
		"http-json-deep": onCall(func(_ *site, w http.ResponseWriter, r *http.Request) {
			asJSON(w, r, `"result":{"content":[],"structuredContent":`+nestedJSON(2000)+`}`)
		}),
		"http-json-odd": onCall(func(_ *site, w http.ResponseWriter, r *http.Request) {
			asJSON(w, r, `"error":{"code":"x","message":7}`)
		}),
	}
}

// siteTraps misbehave in other requests or for the whole server.
func siteTraps() map[string]wrapper {
	return map[string]wrapper{
		"http-session-missing": func(s *site, w http.ResponseWriter, r *http.Request, next http.Handler) {
			if methodOf(r) == "tools/call" && r.Header.Get("Mcp-Session-Id") == "session-1" {
				http.Error(w, "no such session", http.StatusNotFound)
				return
			}
			next.ServeHTTP(w, r)
		},
		"http-session-always-missing": status(404, "text/plain", "no such session"),
		"http-stream-drips":           onGet(func(w http.ResponseWriter, r *http.Request) { drip(w, r) }),
		"http-stream-floods": onGet(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			trickle(w, r, "data: "+`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n\n", 0)
		}),
		"http-stream-forges": onGet(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for id := 1_000_000; id < 1_000_010; id++ {
				_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"forged\"}]}}\n\n", id)
			}
			drip(w, r)
		}),
		"http-stream-endless-event": onGet(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: ")
			trickle(w, r, strings.Repeat("x", 1<<20), 0)
		}),
		"http-all-hang": func(_ *site, _ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() },
		"http-unauthorized": func(s *site, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.other+`/canary"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
		},
	}
}

// gzipBomb sends 100 MiB of spaces in 100 KiB.
func gzipBomb(_ *site, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	for range 100 {
		if _, err := z.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil || r.Context().Err() != nil {
			return
		}
	}
	_ = z.Close()
}

// drip sends comments until the client disconnects.
func drip(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	trickle(w, r, ": still here\n\n", 20*time.Millisecond)
}

// trickle sends text repeatedly until the client disconnects.
func trickle(w http.ResponseWriter, r *http.Request, text string, wait time.Duration) {
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		time.Sleep(wait)
	}
}

// headers sends headers until the client disconnects.
func headers(w http.ResponseWriter, value string, wait time.Duration) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
	for n := 0; err == nil; n++ {
		_, err = fmt.Fprintf(conn, "X-%d: %s\r\n", n, value)
		time.Sleep(wait)
	}
}

// onGet is a wrapper that acts on the GET of the notification stream.
func onGet(do http.HandlerFunc) wrapper {
	return func(_ *site, w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodGet {
			do(w, r)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// asJSON responds with one message instead of a stream.
func asJSON(w http.ResponseWriter, r *http.Request, rest string) {
	var req request
	_ = json.NewDecoder(r.Body).Decode(&req)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, req.ID, rest)
}
