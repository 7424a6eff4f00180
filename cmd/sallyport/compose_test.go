package main

import (
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/helmchart"
)

// TestCompose: the compose file of one gateway meets the specification.
func TestCompose(t *testing.T) {
	p := helmchart.Compose(t, filepath.Join(testutil.ModuleRoot(t), "docs", "deploy", "compose.yaml"), "CI_TOKEN=x")
	if len(p.Services) != 2 || p.Services["sallyport"].StopGrace != "45s" {
		t.Errorf("%+v", p)
	}
}

// TestComposeCluster: each of three machines has a NATS server, a gateway and a worker that know each other by name. Their
// commands, settings and files are valid.
func TestComposeCluster(t *testing.T) {
	cfg, err := config.Parse("upstreams.yaml", []byte(readDeployFile(t, "cluster/upstreams.yaml")), func(string) (string, bool) { return secretOfChart, true })
	if err != nil || cfg.HTTP.Problem != "" || cfg.Sandbox.Remote != "workers" {
		t.Fatalf("%+v, %v", cfg, err)
	}
	for _, node := range []string{"n1", "n2", "n3"} {
		p := helmchart.Compose(t, filepath.Join(testutil.ModuleRoot(t), "docs", "deploy", "cluster", "compose.yaml"),
			"NODE="+node, "N1=10.0.0.1", "N2=10.0.0.2", "N3=10.0.0.3", "IMAGE=sallyport:1", "CLIENT_TOKEN=x")
		if len(p.Services) != 3 {
			t.Fatalf("%+v", p)
		}
		for name, s := range p.Services {
			if !slices.Equal(s.ExtraHosts, []string{"n1=10.0.0.1", "n2=10.0.0.2", "n3=10.0.0.3"}) {
				t.Errorf("%s knows %v", name, s.ExtraHosts)
			}
			if name != "nats" && !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges") {
				t.Errorf("%s has %v and drops %v", name, s.SecurityOpt, s.CapDrop)
			}
		}
		gateway, worker := p.Services["gateway"], p.Services["worker"]
		checkComposeWorker(t, worker, cfg, node)
		if longEnough(t, gateway) < cfg.HTTP.Grace+25*time.Second || !isMounted(gateway, cfg.Store.Creds, "gateway.creds") || !isMounted(gateway, cfg.Store.Key, "seal.key") || !isMounted(gateway, cfg.Store.TLS.CA, "ca.pem") {
			t.Errorf("gateway: %+v", gateway)
		}
		checkNATS(t, node)
	}
}

func checkComposeWorker(t *testing.T, s helmchart.Service, cfg *config.Config, node string) {
	t.Helper()
	cmd, rest, err := newRoot(&app{App: &cli.App{Env: os.LookupEnv}}).Find(s.Command)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err != nil || cmd.Name() != "worker" || cmd.Flags().NArg() > 0 {
		t.Fatalf("sallyport %s: %v", strings.Join(s.Command, " "), err)
	}
	flag := func(name string) string { return cmd.Flags().Lookup(name).Value.String() }
	if flag("join") != cfg.Store.URL || !isMounted(s, flag("creds"), node+".creds") || !isMounted(s, flag("ca"), "ca.pem") {
		t.Errorf("sallyport %s, with %v", strings.Join(s.Command, " "), s.Volumes)
	}
	if longEnough(t, s) < cfg.Sandbox.Timeout+time.Minute || !s.Healthcheck.Disable {
		t.Errorf("worker: %+v", s)
	}
}

// longEnough is the time that a service has to stop.
func longEnough(t *testing.T, s helmchart.Service) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s.StopGrace)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// isMounted reports whether a file of this name is at a path in a service.
func isMounted(s helmchart.Service, path, name string) bool {
	return slices.ContainsFunc(s.Volumes, func(v struct{ Type, Source, Target string }) bool {
		return v.Target == path && filepath.Base(v.Source) == name
	})
}

// checkNATS checks the configuration of a NATS server with the accounts that cluster init writes.
func checkNATS(t *testing.T, node string) {
	t.Helper()
	dir := t.TempDir()
	root := newRoot(&app{App: &cli.App{Env: os.LookupEnv, Stdout: io.Discard, Stderr: io.Discard}})
	root.SetArgs([]string{"cluster", "init", filepath.Join(dir, "keys"), "--worker", node})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	writeCertificate(t, dir)
	text := strings.NewReplacer("/etc/nats/tls/", dir+"/", `"nats-accounts.conf"`, `"keys/nats-accounts.conf"`).Replace(readDeployFile(t, "cluster/nats.conf"))
	path := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NODE", node)
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if opts.ServerName != node || opts.MaxPayload != 8<<20 && opts.MaxPayload != 8_000_000 || !opts.JetStream || !opts.SyncAlways || len(opts.Routes) != 3 || len(opts.TrustedOperators) != 1 {
		t.Errorf("%s %d %v %v %v %v", opts.ServerName, opts.MaxPayload, opts.JetStream, opts.SyncAlways, opts.Routes, opts.TrustedOperators)
	}
}

// writeCertificate writes a certificate, its key and an authority for a server.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.StartTLS()
	defer s.Close()
	pair := s.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	for name, data := range map[string][]byte{"server.pem": certificate, "ca.pem": certificate, "server.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
