// Package apiserver runs an API server of Kubernetes and its database for tests, by the program that `make apiserver` builds. No
// node and no controller belongs to it: it stores objects, after all of its own checks.
package apiserver

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/testutil"
)

// programVariable names the path of the program. `make test-apiserver` sets it.
const programVariable = "SALLYPORT_TEST_APISERVER"

// Server is an API server. It is safe for concurrent use.
type Server struct {
	url, token string
	client     *http.Client
}

// Start starts an API server, which ends with the test. The test is skipped without the program. Its build takes about 10 minutes.
func Start(tb testing.TB) *Server {
	tb.Helper()
	program := os.Getenv(programVariable)
	if program == "" {
		tb.Skip("run make test-apiserver")
	}
	dir := tb.TempDir()
	etcd := fmt.Sprintf("http://127.0.0.1:%d", freePort(tb))
	peers := fmt.Sprintf("http://127.0.0.1:%d", freePort(tb))
	run(tb, program, "etcd", "--data-dir="+filepath.Join(dir, "etcd"), "--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers, "--unsafe-no-fsync", "--log-level=error")
	token, key, port := rand.Text(), writeKey(tb, dir), freePort(tb)
	tokens := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(token+",admin,admin,system:masters\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	run(tb, program, "kube-apiserver", "--etcd-servers="+etcd, "--cert-dir="+dir, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port),
		"--token-auth-file="+tokens, "--authorization-mode=RBAC", "--anonymous-auth=false", "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key, "--service-account-signing-key-file="+key)
	s := &Server{url: fmt.Sprintf("https://127.0.0.1:%d", port), token: token}
	testutil.Eventually(tb, "the API server is ready", time.Minute, func() bool { return s.isReady(tb.Context(), filepath.Join(dir, "apiserver.crt")) })
	return s
}

// isReady reports whether the server, which writes its certificate at the start, is ready.
func (s *Server) isReady(ctx context.Context, certificate string) bool {
	text, err := os.ReadFile(certificate)
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		return false
	}
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}, Timeout: 30 * time.Second}
	return s.Do(ctx, http.MethodGet, "/readyz", nil, nil) == nil
}

// Do sends a request with an object, nil for none, and decodes the answer into result, if that is not nil. The error has the message
// of the server.
func (s *Server) Do(ctx context.Context, method, path string, object []byte, result any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(object))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		var status struct{ Message string }
		_ = json.Unmarshal(text, &status) // an error of the transport has another form
		return fmt.Errorf("%s: %s", resp.Status, status.Message)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}

// run runs a program until the end of the test, which has its errors if it failed.
func run(tb testing.TB, program string, args ...string) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...) //nolint:forbidigo // it ends with the test
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		cancel()
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		cancel()
		if err := cmd.Wait(); err != nil && tb.Failed() {
			text := log.String()
			tb.Logf("%s: %v\n%s", args[0], err, text[max(0, len(text)-5000):])
		}
	})
}

func freePort(tb testing.TB) int {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of TCP
}

// writeKey writes the key that signs tokens of service accounts.
func writeKey(tb testing.TB, dir string) (path string) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	path = filepath.Join(dir, "accounts.pem")
	if err := errors.Join(err, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)); err != nil {
		tb.Fatal(err)
	}
	return path
}
