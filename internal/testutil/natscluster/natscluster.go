// Package natscluster runs NATS servers for tests, as processes of their own that can be killed: with TLS between
// servers and to clients, JetStream that syncs each write, and users with credentials and permissions. The test binary
// is the server: call [Serve] in TestMain.
package natscluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"sallyport/internal/natsconn"
)

// configFile is the variable that makes a process a server with this configuration.
const configFile = "NATSCLUSTER_CONFIG"

// Serve runs a server, and never returns, if this process was started by [Start]. Else it does nothing.
func Serve() {
	path := os.Getenv(configFile)
	if path == "" {
		return
	}
	opts, err := server.ProcessConfigFile(path)
	if err == nil {
		err = run(opts)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// run runs a server until it is stopped or its parent is gone.
func run(opts *server.Options) error {
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	go func() {
		for parent := os.Getppid(); os.Getppid() == parent; {
			time.Sleep(200 * time.Millisecond)
		}
		os.Exit(1)
	}()
	if err := server.Run(s); err != nil {
		return err
	}
	s.WaitForShutdown()
	return fmt.Errorf("the server has ended")
}

// Cluster is a cluster of NATS servers.
type Cluster struct {
	// CA is a file with the certificate to trust, OtherCA one with a certificate that did not sign those of the servers.
	CA, OtherCA string
	// Creds are credentials that may use JetStream and the subjects of the prefix "sallyport", those of workers and of gateways; NoCreds may do nothing, and
	// OtherCreds everything in another account. RawCreds may publish and subscribe to everything in the account of Creds.
	Creds, NoCreds, OtherCreds, RawCreds string

	dir     string
	nodes   []*node
	account nkeys.KeyPair // of Creds
	plain   bool          // without TLS
}

// node is one server.
type node struct {
	name, config  string
	place         Place
	port, cluster int

	mu  sync.Mutex
	cmd *exec.Cmd
}

// Place is where a server runs: this machine, or a host of a network that a test has made.
type Place interface {
	IP() string
	Start(cmd *exec.Cmd) error
	// Dial connects to the server from where the test runs.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// local is the machine of the test.
type local struct{}

// IP implements [Place].
func (local) IP() string { return "127.0.0.1" }

// Start implements [Place].
func (local) Start(cmd *exec.Cmd) error { return cmd.Start() }

// Dial implements [Place].
func (local) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// address returns a port of the node's place as clients and other servers use it.
func (n *node) address(port int) string { return net.JoinHostPort(n.place.IP(), strconv.Itoa(port)) }

// TB is what servers use of the test that they end with. A benchmark that is no test has one of its own.
type TB interface {
	Helper()
	Context() context.Context
	TempDir() string
	Cleanup(end func())
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Start starts servers, which end with the test.
func Start(tb TB, servers int) *Cluster {
	tb.Helper()
	c := &Cluster{dir: tb.TempDir()}
	for i := range servers {
		c.nodes = append(c.nodes, &node{name: fmt.Sprintf("n%d", i+1), place: local{}, port: freePort(tb), cluster: freePort(tb)})
	}
	c.startAll(tb)
	return c
}

// StartAt starts a server at each of these places, which end with the test.
func StartAt(tb TB, places ...Place) *Cluster {
	tb.Helper()
	c := &Cluster{dir: tb.TempDir()}
	for i, place := range places {
		c.nodes = append(c.nodes, &node{name: fmt.Sprintf("n%d", i+1), place: place, port: 4222, cluster: 6222})
	}
	c.startAll(tb)
	return c
}

// startAll writes the configuration of all servers, and starts them.
func (c *Cluster) startAll(tb TB) {
	tb.Helper()
	if err := c.write(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		for i := range c.nodes {
			c.Kill(tb, i)
		}
	})
	for i := range c.nodes {
		c.Start(tb, i)
	}
}

// Server returns how a process with a name connects to the servers, with all rights.
func (c *Cluster) Server(name string) natsconn.Server {
	return natsconn.Server{URL: c.URL(), Creds: c.Creds, CA: c.CA, Name: name}
}

// StartPlain starts one server without TLS, which has the accounts of a part of a configuration. The cluster has no credentials.
func StartPlain(tb TB, accounts string) *Cluster {
	tb.Helper()
	dir := tb.TempDir()
	n := &node{name: "n1", place: local{}, port: freePort(tb), config: filepath.Join(dir, "n1.conf")}
	text, err := os.ReadFile(accounts)
	if err == nil {
		text = fmt.Appendf(text, "server_name: n1\nlisten: \"127.0.0.1:%d\"\nmax_payload: 8MB\njetstream: { store_dir: %q, sync_interval: always }\nlogfile: %q\n", n.port, filepath.Join(dir, "n1"), filepath.Join(dir, "n1.log"))
		err = os.WriteFile(n.config, text, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
	c := &Cluster{dir: dir, nodes: []*node{n}, plain: true}
	tb.Cleanup(func() { c.Kill(tb, 0) })
	c.Start(tb, 0)
	return c
}

func freePort(tb TB) int {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is of TCP
}

// URL returns the addresses of all servers.
func (c *Cluster) URL() string {
	var all []string
	scheme := "tls"
	if c.plain {
		scheme = "nats"
	}
	for _, n := range c.nodes {
		all = append(all, scheme+"://"+n.address(n.port))
	}
	return strings.Join(all, ",")
}

// write writes the keys and the configuration of all servers.
func (c *Cluster) write() error {
	secrets, err := c.writeSecrets()
	if err != nil {
		return err
	}
	var routes []string
	for _, n := range c.nodes {
		routes = append(routes, "tls://"+n.address(n.cluster))
	}
	for _, n := range c.nodes {
		n.config = filepath.Join(c.dir, n.name+".conf")
		tls := fmt.Sprintf("{ cert_file: %q, key_file: %q, ca_file: %q }", secrets.cert, secrets.key, c.CA)
		text := fmt.Sprintf(`server_name: %s
listen: %q
max_payload: 8MB
tls: %s
jetstream: { store_dir: %q, sync_interval: always, max_file_store: 16GB, max_memory_store: 64MB }
operator: %q
system_account: %s
resolver: MEMORY
resolver_preload: { %s }
logfile: %q
`, n.name, n.address(n.port), tls, filepath.Join(c.dir, n.name), secrets.operator, secrets.system, strings.Join(secrets.accounts, ", "), filepath.Join(c.dir, n.name+".log"))
		if len(c.nodes) > 1 {
			text += fmt.Sprintf("cluster: { name: test, listen: %q, tls: %s, routes: [ %s ] }\n", n.address(n.cluster), tls, strings.Join(routes, ", "))
		}
		if err := os.WriteFile(n.config, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Start starts a server, and waits until it accepts connections.
func (c *Cluster) Start(tb TB, i int) {
	tb.Helper()
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	n.cmd = exec.CommandContext(context.WithoutCancel(tb.Context()), self)
	n.cmd.Env = append(os.Environ(), configFile+"="+n.config)
	n.cmd.Stderr = os.Stderr
	if err := n.place.Start(n.cmd); err != nil {
		tb.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := n.answers(tb.Context())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			tb.Fatalf("server %s does not listen: %v", n.name, err)
		}
	}
}

// answers returns the error of a connection to the server.
func (n *node) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := n.place.Dial(ctx, "tcp", n.address(n.port))
	if err != nil {
		return err
	}
	return conn.Close()
}

// Kill ends a server with SIGKILL, and waits for it. One that was killed is not an error.
func (c *Cluster) Kill(tb TB, i int) {
	tb.Helper()
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Kill() // it may have ended
	_ = n.cmd.Wait()         // it was killed
	n.cmd = nil
}

// Signal sends a signal to a server. One that is stopped by SIGSTOP continues at the end of the test, before clients are closed.
func (c *Cluster) Signal(tb TB, i int, s syscall.Signal) {
	tb.Helper()
	process := c.nodes[i].cmd.Process
	if err := process.Signal(s); err != nil {
		tb.Fatal(err)
	}
	if s == syscall.SIGSTOP {
		tb.Cleanup(func() { _ = process.Signal(syscall.SIGCONT) }) // it may have ended
	}
}

// Index returns the server with a name, -1 for none.
func (c *Cluster) Index(name string) int {
	for i, n := range c.nodes {
		if n.name == name {
			return i
		}
	}
	return -1
}
