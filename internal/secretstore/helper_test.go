package secretstore_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/secretstore"
)

// network has servers by host. They answer in this process, so that tests can have a clock of their own.
type network map[string]http.Handler

// RoundTrip implements [http.RoundTripper].
func (n network) RoundTrip(req *http.Request) (*http.Response, error) {
	handler := n[req.URL.Host]
	if handler == nil {
		return nil, errors.New("no such host")
	}
	in := req.Clone(req.Context())
	in.Host = req.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		handler.ServeHTTP(w, in)
	}()
	select {
	case <-done:
		return w.Result(), nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// hosts are the addresses of the managers in tests.
const (
	vaultHost, connectHost = "vault.example.com:8200", "connect.example.com"
	awsHost, stsHost       = "secretsmanager.eu-west-1.amazonaws.com", "sts.eu-west-1.amazonaws.com"
	googleHost             = "secretmanager.googleapis.com"
)

// open returns a store on a network, with variables of the environment.
func (n network) open(change func(*secretstore.Managers), env map[string]string) *secretstore.Store {
	s := secretstore.New(&secretstore.Options{
		Getenv:    func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		Transport: func(string) (http.RoundTripper, error) { return n, nil },
		Logger:    slog.New(slog.DiscardHandler),
	})
	m := secretstore.DefaultManagers()
	m.Vault.Address, m.AWS.Region, m.OnePassword.URL = "https://"+vaultHost, "eu-west-1", "https://"+connectHost
	if change != nil {
		change(&m)
	}
	s.Use(m)
	return s
}

// want checks what a reference gives.
func want(t *testing.T, s *secretstore.Store, reference, value string) {
	t.Helper()
	if got, err := s.Read(reference); err != nil || got != value {
		t.Errorf("%s: %q, want %q; %v", reference, got, value, err)
	}
}

// wantError checks the error of a reference, which has the kind, and texts in it.
func wantError(t *testing.T, s *secretstore.Store, reference string, kind secretstore.Kind, texts ...string) {
	t.Helper()
	got, err := s.Read(reference)
	e, ok := errors.AsType[*secretstore.Error](err)
	if !ok || got != "" || e.Kind != kind {
		t.Errorf("%s: %q, %v, want the kind %s", reference, got, err, kind)
		return
	}
	for _, text := range texts {
		if !strings.Contains(e.Error(), text) {
			t.Errorf("%s: %q has no %q", reference, e, text)
		}
	}
}

// running runs a test with a clock of its own, and the renewal of a store.
func running(t *testing.T, s func() *secretstore.Store, test func(t *testing.T, s *secretstore.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		store, done := s(), make(chan struct{})
		go func() {
			defer close(done)
			store.Run(ctx)
		}()
		test(t, store)
		cancel()
		<-done
	})
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
