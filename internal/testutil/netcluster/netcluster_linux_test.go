package netcluster_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/netcluster"
)

// echoAddress makes the test binary a server that answers each connection with what it reads.
const echoAddress = "NETCLUSTER_ECHO"

func TestMain(m *testing.M) {
	if address := os.Getenv(echoAddress); address != "" {
		echo(address)
	}
	os.Exit(m.Run())
}

func echo(address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		panic(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go func() { _, _ = io.Copy(conn, conn) }()
	}
}

// newHosts makes a network with two hosts, each with a server.
func newHosts(t *testing.T) (*netcluster.Network, []*netcluster.Host) {
	t.Helper()
	network, err := netcluster.New()
	if errors.Is(err, errors.ErrUnsupported) {
		testutil.Missing(t, "a network namespace ("+err.Error()+")", "run as root")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		testutil.Eventually(t, "no process is left", 10*time.Second, func() bool { return len(network.Processes()) == 0 })
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	var hosts []*netcluster.Host
	for _, name := range []string{"one", "two"} {
		host, err := network.Add(name)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, host)
		start(t, host)
	}
	return network, hosts
}

// start starts a server on a host, and waits until it answers.
func start(t *testing.T, host *netcluster.Host) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self)
	cmd.Env = append(os.Environ(), echoAddress+"="+host.IP()+":7")
	cmd.Stderr = os.Stderr
	if err := host.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	testutil.Eventually(t, host.Name+" answers", 20*time.Second, func() bool {
		conn, err := host.Dial(t.Context(), "tcp", host.IP()+":7")
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}

// transfer sends bytes to a host and reads them back. It returns how long that took.
func transfer(t *testing.T, host *netcluster.Host, size int, limit time.Duration) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	conn, err := host.Dial(ctx, "tcp", host.IP()+":7")
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(began.Add(limit))
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(make([]byte, size))
		sent <- err
	}()
	_, err = io.ReadFull(conn, make([]byte, size))
	return time.Since(began), errors.Join(err, <-sent)
}

// TestLinks cuts the link of one host and slows it down: the other one is as before.
func TestLinks(t *testing.T) {
	t.Parallel()
	network, hosts := newHosts(t)
	one, two := hosts[0], hosts[1]
	if n := len(network.Processes()); n != 2 {
		t.Errorf("%d processes are in the network", n)
	}
	fine := func(host *netcluster.Host) {
		t.Helper()
		if _, err := transfer(t, host, 100_000, 20*time.Second); err != nil {
			t.Errorf("%s: %v", host.Name, err)
		}
	}
	fine(one)
	if err := one.Cut(); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer(t, one, 1, time.Second); err == nil {
		t.Error("a host answers without a link")
	}
	fine(two)
	if err := one.Mend(); err != nil {
		t.Fatal(err)
	}
	fine(one)
	if err := one.Slow(50_000); err != nil {
		t.Fatal(err)
	}
	if took, err := transfer(t, one, 100_000, 20*time.Second); err != nil || took < 1500*time.Millisecond {
		t.Errorf("100 kB to a host that has 50 kB/s took %s: %v", took, err)
	}
	fine(two)
	if err := one.Mend(); err != nil {
		t.Fatal(err)
	}
	if took, err := transfer(t, one, 100_000, 20*time.Second); err != nil || took > 1500*time.Millisecond {
		t.Errorf("100 kB to a host with a fast link took %s: %v", took, err)
	}
}
