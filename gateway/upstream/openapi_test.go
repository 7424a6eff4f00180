package upstream_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/upstream"
	"sallyport/internal/config"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

const petDocument = `{"openapi":"3.1.0","info":{"title":"Pets","version":"7"},"paths":{
	"/pets/{id}":{"get":{"operationId":"getPet","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}}],
		"responses":{"200":{"content":{"application/json":{"schema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}},
	"delete":{"operationId":"deletePet"}}}}`

// apiSettings are those of an upstream with a document, whose requests answer serves.
func apiSettings(t *testing.T, answer http.HandlerFunc) upstream.Settings {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pets.json")
	if err := os.WriteFile(path, []byte(petDocument), 0o600); err != nil {
		t.Fatal(err)
	}
	server := tlstest.NewServer(t, answer)
	return upstream.Settings{ID: "pets", OpenAPI: path, URL: server.URL + "/v1", Headers: map[string]string{"X-Api-Key": "key-1234567890abcdef"}}
}

func callPet(t *testing.T, s *upstream.Session, name, args string) (tool.Result, error) {
	t.Helper()
	return s.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "pets", Name: name}, Args: json.RawMessage(args)})
}

// The operations of a document are tools of a session like any other's; secrets of the settings are hidden in what the API answers.
func TestOpenAPI(t *testing.T) {
	settings := apiSettings(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/v1/pets/a b" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, `{"name":"rex `+r.Header.Get("X-Api-Key")+`","n":9007199254740993}`)
	})
	s := open(t, settings, nil)
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	tools := s.Tools()
	if len(tools) != 2 || tools[1].ID.Name != "getPet" || !*tools[1].Annotations.ReadOnly || !*tools[0].Annotations.Destructive || len(tools[1].Output) == 0 {
		t.Fatalf("tools %+v", tools)
	}
	if state := s.State(); state.ServerName != "Pets" || state.ServerVersion != "7" {
		t.Errorf("state %+v", state)
	}
	result, err := callPet(t, s, "getPet", `{"id":"a b"}`)
	if err != nil || result.IsError || string(result.Structured) != `{"name":"rex [hidden]","n":9007199254740993}` {
		t.Errorf("result %s, %v", result.Structured, err)
	}
	result, err = callPet(t, s, "deletePet", `{"id":"x"}`)
	if err != nil || !result.IsError || !strings.HasPrefix(result.Content[0].Text, "HTTP 404 Not Found: ") || strings.Contains(result.Content[0].Text, "key-123") {
		t.Errorf("result %+v, %v", result, err)
	}
	if _, err = callPet(t, s, "getPet", `{"id":".."}`); kindOfError(err) != tool.Invalid {
		t.Errorf("error %v", err)
	}
}

// A call that the API does not answer fails alone, and says whether it may be repeated.
func TestOpenAPIFaults(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	settings := apiSettings(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			panic(http.ErrAbortHandler)
		}
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	settings.Timeout = 300 * time.Millisecond
	s := open(t, settings, nil)
	_, err := callPet(t, s, "getPet", `{"id":"x"}`)
	if kindOfError(err) != tool.Timeout {
		t.Errorf("hanging: %v", err)
	}
	_, err = callPet(t, s, "deletePet", `{"id":"x"}`)
	if kindOfError(err) != tool.Upstream || strings.Contains(err.Error(), settings.URL) {
		t.Errorf("aborted: %v", err)
	}
	if s.State().Status != upstream.Ready {
		t.Errorf("state %+v", s.State())
	}
}

func TestOpenAPIDocumentMissing(t *testing.T) {
	s := open(t, upstream.Settings{ID: "pets", OpenAPI: filepath.Join(t.TempDir(), "none.yaml")}, nil)
	if err := s.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "read none.yaml: no such file") {
		t.Errorf("error %v", err)
	}
}

// With auth an API gets the token of the login, and a new one when it refuses that.
func TestOpenAPIAuth(t *testing.T) {
	settings := apiSettings(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token-hunter2-2" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	settings.Auth = config.Auth{Type: "oauth"}
	k := &keys{}
	k.got.Store(1)
	s := open(t, settings, &upstream.Options{Auth: k})
	if result, err := callPet(t, s, "getPet", `{"id":"x"}`); err != nil || result.IsError || k.asked.Load() != 1 {
		t.Errorf("result %+v, %v, asked %d times", result, err, k.asked.Load())
	}
	k.got.Store(7)
	k.fails = needLogin{}
	if _, err := callPet(t, s, "getPet", `{"id":"x"}`); kindOfError(err) != tool.Denied {
		t.Errorf("error %v", err)
	}
}

type needLogin struct{}

func (needLogin) Error() string    { return "login required" }
func (needLogin) NeedsLogin() bool { return true }

// kindOfError returns the kind of a *tool.Error, "" for any other error.
func kindOfError(err error) tool.Kind {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e.Kind
	}
	return ""
}
