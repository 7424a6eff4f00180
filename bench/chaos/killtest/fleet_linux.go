package killtest

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/testutil/netcluster"
	"sallyport/sandbox/workers"
)

// fleet is a cluster on the hosts of a network.
type fleet struct {
	*campaign

	network  *netcluster.Network
	holder   *natscluster.Holder
	servers  *natscluster.Cluster
	gateways []*gateway
	workers  []*gateway
	hosts    []*netcluster.Host // of the gateways
	members  []*member
	next     atomic.Int64    // where the next client begins
	seen     map[string]bool // the folders of sandboxes, which are in the names of cgroups

	faults map[string]int
}

const (
	// each is how many there are of each kind of member.
	each     = 3
	bankPort = 9000
	webPort  = 8080
)

func newFleet(c *campaign, network *netcluster.Network) *fleet {
	c.tries, c.again, c.unlisted, c.answers = 600, 500*time.Millisecond, "last", map[string]int{}
	return &fleet{campaign: c, network: network, seen: map[string]bool{}, faults: map[string]int{}}
}

// start starts everything, and returns when all gateways and workers are ready.
func (f *fleet) start(ctx context.Context) error {
	listener, err := f.network.Listen(ctx, bankPort)
	if err != nil {
		return err
	}
	f.bank = serveBank(f.ledger, listener)
	f.holder = natscluster.NewHolder(ctx, f.dir)
	if err := f.startServers(); err != nil {
		return err
	}
	for i := range each {
		if err := f.addGateway(i); err != nil {
			return err
		}
		if err := f.addWorker(i); err != nil {
			return err
		}
	}
	f.api = func(token string) api {
		b := &balancer{fleet: f, at: int(f.next.Add(1)) % each}
		return api{base: "http://" + anyGateway, token: token, transport: &http.Transport{DialContext: b.dial, DisableKeepAlives: true}, lost: b.move, resend: true}
	}
	if err := f.startAll(ctx); err != nil {
		return err
	}
	f.up.open()
	return f.warm(ctx)
}

func (f *fleet) startServers() error {
	var places []natscluster.Place
	for i := range each {
		host, err := f.network.Add(fmt.Sprintf("server%d", i+1))
		if err != nil {
			return err
		}
		places = append(places, host)
		f.members = append(f.members, &member{
			kind: "server", host: host,
			kill:  f.server(func(tb natscluster.TB) { f.servers.Kill(tb, i) }),
			start: f.server(func(tb natscluster.TB) { f.servers.Start(tb, i) }),
			signal: func(s syscall.Signal) error {
				return f.server(func(tb natscluster.TB) { f.servers.Signal(tb, i, s) })(nil)
			},
		})
	}
	return f.holder.Run(func() { f.servers = natscluster.StartAt(f.holder, places...) })
}

// server returns a function that does something to a server.
func (f *fleet) server(do func(tb natscluster.TB)) func(context.Context) error {
	return func(context.Context) error {
		h := natscluster.NewHolder(f.holder.Context(), f.dir)
		return h.Run(func() { do(h) })
	}
}

// addMember adds a gateway or a worker on a host of its own.
func (f *fleet) addMember(kind string, i int, g *gateway) (*netcluster.Host, error) {
	host, err := f.network.Add(fmt.Sprintf("%s%d", kind, i+1))
	if err != nil {
		return nil, err
	}
	g.dir, g.command, g.begin = filepath.Join(f.dir, host.Name), f.Command, host.Start
	f.members = append(f.members, &member{
		kind: kind, host: host,
		kill: func(context.Context) error { return g.kill() }, start: g.start,
		signal: func(s syscall.Signal) error { return g.process().Process.Signal(s) },
	})
	return host, os.Mkdir(g.dir, 0o700)
}

func (f *fleet) addGateway(i int) error {
	g := &gateway{ready: listening}
	host, err := f.addMember("gateway", i, g)
	if err != nil {
		return err
	}
	g.args = []string{"serve", "--http", fmt.Sprintf("%s:%d", host.IP(), webPort)}
	f.gateways, f.hosts = append(f.gateways, g), append(f.hosts, host)
	return f.writeSettings(g.dir, fmt.Sprintf("sandbox: {remote: workers, parallel: 4, typecheck: false, timeout: 5m, pool: {min: 0, max: 2}}\nstore: {url: %q, creds: %q, tls: {ca: %q}, replicas: 3}\n",
		f.servers.URL(), f.servers.Creds, f.servers.CA))
}

func (f *fleet) addWorker(i int) error {
	w := &gateway{ready: regexp.MustCompile(`msg=joined`)}
	host, err := f.addMember("worker", i, w)
	if err != nil {
		return err
	}
	rights := workers.WorkerRights("sallyport", host.Name)
	var creds string
	if err := f.holder.Run(func() { creds = f.servers.User(f.holder, host.Name, rights.Publish, rights.Subscribe) }); err != nil {
		return err
	}
	w.args = []string{"worker", "--join", f.servers.URL(), "--creds", creds, "--ca", f.servers.CA, "--seats", "4", "--runsc", f.Runsc}
	f.workers = append(f.workers, w)
	return os.WriteFile(filepath.Join(w.dir, "upstreams.yaml"), []byte("upstreams: {}\n"), 0o600)
}

// startAll starts the gateways and workers.
func (f *fleet) startAll(ctx context.Context) error {
	failed := make(chan error, 2*each)
	for _, g := range slices.Concat(f.gateways, f.workers) {
		go func() { failed <- g.start(ctx) }()
	}
	for range 2 * each {
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

// warm runs a program until it ends well: workers join after they are started.
func (f *fleet) warm(ctx context.Context) error {
	person := f.api("person-token-of-a-test")
	for end := time.Now().Add(startTime); ; pause(ctx, 200*time.Millisecond) {
		a := person.execute(ctx, &job{language: "python", code: "print(1)"}, "")
		if a.status == "ok" {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("no program runs: %s %s", a.status, a.text)
		}
	}
}

// stop ends the cluster as operators do, and checks what it has left.
func (f *fleet) stop(ctx context.Context) error {
	f.seeHosts()
	if err := f.check(ctx, f.gateways); err != nil {
		return err
	}
	for _, w := range f.workers {
		if err := w.stop(); err != nil {
			f.problem("%v", err)
		}
	}
	f.holder.End()
	f.checkLeft(f.cgroups, f.network.Processes)
	return nil
}

// end ends what a campaign that failed has left.
func (f *fleet) end() {
	for _, g := range slices.Concat(f.gateways, f.workers) {
		if cmd := g.process(); cmd != nil {
			_ = cmd.Process.Kill() // it may have ended
		}
	}
	if f.holder != nil {
		f.holder.End()
	}
	if f.bank != nil {
		f.bank.close()
	}
}

// seeHosts notes the names of the folders of sandboxes.
func (f *fleet) seeHosts() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = filepath.WalkDir(f.dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), "host-") {
			f.seen[entry.Name()] = true
			return fs.SkipDir
		}
		return nil // what has ended is no longer there
	})
}

// cgroups returns the cgroups of sandboxes that were seen.
func (f *fleet) cgroups() (found []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		for host := range f.seen {
			if err == nil && entry.IsDir() && strings.Contains(entry.Name(), host+"-") {
				found = append(found, path)
			}
		}
		return nil // what has ended is no longer there
	})
	return found
}

// balancer connects a client to one of the gateways, and to the next one when that does not answer.
type balancer struct {
	fleet *fleet
	mu    sync.Mutex
	at    int
}

// dialTime is how long a gateway may take to accept a connection.
const dialTime = 2 * time.Second

func (b *balancer) dial(ctx context.Context, network, _ string) (conn net.Conn, err error) {
	for range each {
		b.mu.Lock()
		host := b.fleet.hosts[b.at]
		b.mu.Unlock()
		if conn, err = dialHost(ctx, host, network); err == nil {
			return conn, nil
		}
		b.move()
	}
	return nil, err
}

func dialHost(ctx context.Context, host *netcluster.Host, network string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return host.Dial(ctx, network, fmt.Sprintf("%s:%d", host.IP(), webPort))
}

// move chooses the next gateway.
func (b *balancer) move() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = (b.at + 1) % each
}
