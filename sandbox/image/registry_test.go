package image

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

// TestRegistries: what is wrong with a registry costs one pull, in bounded time, and leaves nothing.
func TestRegistries(t *testing.T) {
	blob := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/blobs/") }
	change := func(w http.ResponseWriter, r *http.Request, next http.Handler, f func([]byte) []byte) {
		recorder := httptest.NewRecorder()
		next.ServeHTTP(recorder, r)
		for key, values := range recorder.Header() {
			if key != "Content-Length" {
				w.Header()[key] = values
			}
		}
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(f(recorder.Body.Bytes()))
	}
	flip := func(data []byte) []byte { data[len(data)/2] ^= 0x20; return data }
	for _, test := range []struct {
		name    string
		between func(w http.ResponseWriter, r *http.Request, next http.Handler)
		want    error
		text    string
	}{
		{"changes layers", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			change(w, r, next, func(data []byte) []byte {
				if blob(r) {
					return flip(data)
				}
				return data
			})
		}, nil, ""},
		{"changes manifests", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			change(w, r, next, func(data []byte) []byte {
				if blob(r) {
					return data
				}
				return append(data, ' ')
			})
		}, ErrChanged, ""},
		{"cuts layers short", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			change(w, r, next, func(data []byte) []byte {
				if blob(r) {
					return data[:len(data)-1]
				}
				return data
			})
		}, nil, ""},
		{"an endless manifest", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if blob(r) || !strings.Contains(r.URL.Path, "manifests") {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 64<<10))
			}
		}, ErrTooLarge, ""},
		{"an endless layer", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if !blob(r) {
				next.ServeHTTP(w, r)
				return
			}
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}, nil, ""},
		{"falls silent", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if !blob(r) {
				next.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, errStalled, ""},
		{"says nothing", func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }, nil, "timeout"},
		{"leads to the metadata of a cloud", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if !blob(r) {
				next.ServeHTTP(w, r)
				return
			}
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusTemporaryRedirect)
		}, nil, "169.254.169.254"},
		{"leads to itself", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if !blob(r) {
				next.ServeHTTP(w, r)
				return
			}
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, nil, "too many redirects"},
		{"wants a login", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}, nil, "401"},
		{"is something else", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			_, _ = io.WriteString(w, "<html>welcome</html>")
		}, ErrChanged, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, opts := newStore(t), options(t)
			opts.Limits.Stall = time.Second
			reference := s.push(t, imageOf(t, "amd64", layerOf(t, entry{name: "a", body: strings.Repeat("abc", 1000)})))
			s.between = test.between
			_, err := Pull(t.Context(), reference, opts)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v", err)
			}
			checkNoPartial(t, opts.Dir, 0)
		})
	}
}

func TestRegistryIsDown(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	opts := options(t)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // the library tries for some seconds
	defer cancel()
	_, err := Pull(ctx, strings.TrimPrefix(server.URL, "http://")+"/x@sha256:"+strings.Repeat("0", 64), opts)
	if err == nil {
		t.Error("pulled from nowhere")
	}
	checkNoPartial(t, opts.Dir, 0)
}

// TestAddresses: a name of a registry, or a redirect of one, does not lead to this machine or its metadata.
func TestAddresses(t *testing.T) {
	for address, want := range map[string][2]bool{ // for a registry elsewhere, and for one that is here
		"93.184.216.34:443": {true, true}, "10.1.2.3:443": {true, true}, "[2606:2800:220::1]:443": {true, true},
		"127.0.0.1:80": {false, true}, "[::1]:80": {false, true}, "[::ffff:127.0.0.1]:80": {false, true},
		"169.254.169.254:80": {false, false}, "[fe80::1]:80": {false, false}, "0.0.0.0:80": {false, false}, "[::]:80": {false, false}, "nonsense": {false, false},
	} {
		for i, local := range []bool{false, true} {
			if got := checkAddress(address, local) == nil; got != want[i] {
				t.Errorf("%s, local %v: %v", address, local, got)
			}
		}
	}
	for host, want := range map[string]bool{"localhost:5000": true, "127.0.0.1:5000": true, "example.com": false, "169.254.169.254": false} {
		registry, err := name.NewRegistry(host)
		if err != nil || localRegistry(registry) != want {
			t.Errorf("%s: %v", host, err)
		}
	}
}
