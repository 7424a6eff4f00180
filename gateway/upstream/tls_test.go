package upstream_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/grpcserver"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tlsfiles"
	"sallyport/internal/tool"
)

// A gRPC server that needs the certificate of a client gets it. It refuses a session without one, and one that another authority
// has issued; the session refuses a server of an authority that it does not trust.
func TestGRPCClientCertificate(t *testing.T) {
	t.Parallel()
	own, other := tlstest.NewPrivate(t), tlstest.NewPrivate(t)
	server := grpcserver.Start(t, grpcserver.Options{Certificate: &own.Server, Clients: own.Pool})
	tomorrow := time.Now().Add(24 * time.Hour)
	cert, key := own.Client(t, 7, tomorrow)
	foreignCert, foreignKey := other.Client(t, 8, tomorrow)
	url := "https://" + server.Address
	connect := func(files tlsfiles.Files) (*upstream.Session, error) {
		s := open(t, upstream.Settings{ID: "shop", GRPC: url, URL: url, Headers: map[string]string{"X-Key": grpcserver.Key}, Include: []string{"service:*.Orders"}, TLS: files}, nil)
		return s, s.Connect(t.Context())
	}
	s, err := connect(tlsfiles.Files{CA: own.CA, Cert: cert, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := callGRPC(t, s, "GetOrder", `{"id":404}`); err != nil || r.Content[0].Text != "gRPC NOT_FOUND: there is no order 404" {
		t.Errorf("%+v %v", r, err)
	}
	for name, of := range map[string]struct {
		files tlsfiles.Files
		want  string
	}{
		// The reason of the server may be lost: it closes the connection while a request is sent.
		"no certificate":              {tlsfiles.Files{CA: own.CA}, "cannot connect to upstream shop: "},
		"one of another authority":    {tlsfiles.Files{CA: own.CA, Cert: foreignCert, Key: foreignKey}, "cannot connect to upstream shop: "},
		"the authorities of a system": {tlsfiles.Files{Cert: cert, Key: key}, "certificate signed by unknown authority"},
	} {
		if _, err := connect(of.files); kindOfError(err) != tool.Upstream || !strings.Contains(err.Error(), of.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Files that cannot be used are errors of the settings that name the key and the file, and the next attempt reads them again.
func TestTLSFileFaults(t *testing.T) {
	t.Parallel()
	own := tlstest.NewPrivate(t)
	cert, key := own.Client(t, 1, time.Now().Add(time.Hour))
	dir := t.TempDir()
	empty, missing := filepath.Join(dir, "empty.pem"), filepath.Join(dir, "later.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := grpcserver.Start(t, grpcserver.Options{Certificate: &own.Server, Clients: own.Pool})
	url := "https://" + server.Address
	session := func(files tlsfiles.Files) *upstream.Session {
		return open(t, upstream.Settings{ID: "shop", GRPC: url, URL: url, Headers: map[string]string{"X-Key": grpcserver.Key}, TLS: files}, nil)
	}
	for _, of := range []struct {
		files tlsfiles.Files
		want  string
	}{
		{tlsfiles.Files{CA: missing}, "its tls.ca cannot be used: " + missing + " cannot be read: no such file or directory"},
		{tlsfiles.Files{CA: empty}, "its tls.ca cannot be used: " + empty + " has no certificate in PEM"},
		{tlsfiles.Files{Cert: dir, Key: key}, "its tls.cert cannot be used: " + dir + " is not a file"},
		{tlsfiles.Files{Cert: empty, Key: key}, "its tls.cert cannot be used: " + empty + " has no certificate in PEM"},
		{tlsfiles.Files{Cert: cert, Key: empty}, "its tls.key cannot be used: " + empty + " is not the key of the certificate in " + cert},
		{tlsfiles.Files{Cert: cert}, "its tls.cert cannot be used: a client certificate needs its \"key\""},
	} {
		if err := session(of.files).Connect(t.Context()); kindOfError(err) != tool.Upstream || !strings.Contains(err.Error(), of.want) {
			t.Errorf("%+v: %v; want %s", of.files, err, of.want)
		}
	}
	later := session(tlsfiles.Files{CA: own.CA, Cert: missing, Key: key})
	if err := later.Connect(t.Context()); kindOfError(err) != tool.Upstream {
		t.Fatal(err)
	}
	if err := os.Rename(cert, missing); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "the file is read again", soon, func() bool { return later.Connect(t.Context()) == nil })
	cert, key = own.Client(t, 2, time.Now().Add(-time.Minute))
	if err := session(tlsfiles.Files{Cert: cert, Key: key}).Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "expired on "+time.Now().UTC().Format("2006-")) {
		t.Errorf("expired: %v", err)
	}
}

// The same setting is for MCP servers and for HTTP APIs with their documents. A renewed certificate is sent with the next connection.
func TestClientCertificateOverHTTP(t *testing.T) {
	t.Parallel()
	t.Run("MCP", func(t *testing.T) {
		m := newMutual(t)
		s := open(t, upstream.Settings{ID: "mem", URL: m.URL + "/mcp", TLS: m.files}, nil)
		m.renew(t, func() bool { // a call on a connection that was closed fails
			r, err := s.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "mem", Name: "echo"}, Args: []byte(`{"text":"hello"}`)})
			return err == nil && strings.Contains(r.Content[0].Text, "hello")
		})
	})
	t.Run("OpenAPI", func(t *testing.T) {
		m := newMutual(t)
		s := open(t, upstream.Settings{ID: "pets", OpenAPI: m.URL + "/pets.json", URL: m.URL + "/v1", TLS: m.files}, nil)
		m.renew(t, func() bool {
			r, err := callPet(t, s, "getPet", `{"id":"1"}`)
			return err == nil && strings.Contains(string(r.Structured), "rex")
		})
	})
}

// mutual is an MCP server and an HTTP API, for clients with a certificate only.
type mutual struct {
	*httptest.Server
	own    *tlstest.Private
	files  tlsfiles.Files
	serial atomic.Int64 // of the certificate of the last request
}

func newMutual(t *testing.T) *mutual {
	t.Helper()
	m := &mutual{own: tlstest.NewPrivate(t)}
	m.files.CA = m.own.CA
	m.files.Cert, m.files.Key = m.own.Client(t, 1, time.Now().Add(time.Hour))
	server := mcp.NewServer(&mcp.Implementation{Name: "site", Version: "2"}, nil)
	addEcho(server, "echo")
	handler := http.NewServeMux()
	handler.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	handler.HandleFunc("/pets.json", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, petDocument) })
	handler.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"name":"rex"}`)
	})
	m.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.serial.Store(r.TLS.PeerCertificates[0].SerialNumber.Int64())
		handler.ServeHTTP(w, r)
	}))
	m.TLS = &tls.Config{Certificates: []tls.Certificate{m.own.Server}, ClientCAs: m.own.Pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	m.EnableHTTP2 = true
	m.StartTLS()
	t.Cleanup(m.Close)
	return m
}

// renew calls with a certificate and with the one that replaces its files.
func (m *mutual) renew(t *testing.T, call func() bool) {
	t.Helper()
	for want := int64(1); want <= 2; want++ {
		testutil.Eventually(t, "the server gets the certificate", soon, func() bool { return call() && m.serial.Load() == want })
		m.own.Client(t, want+1, time.Now().Add(time.Hour))
		m.CloseClientConnections()
	}
}
