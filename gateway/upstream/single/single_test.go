package single_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway/upstream/single"
	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	os.Exit(m.Run())
}

const eventually = time.Minute

// gate is the runner of one gateway.
type gate struct {
	*single.Runner

	records *store.Store
}

// open opens a gateway, whose upstreams repeat each line after its name. The upstream "broken" cannot be connected.
func open(t *testing.T, c *natscluster.Cluster, name string) *gate {
	t.Helper()
	g := &gate{records: storetest.ConnectRemote(t, store.Remote{Server: c.Server(name)})}
	publish, subscribe := single.Rights("sallyport")
	server := c.Server(name)
	server.Creds = c.User(t, name, publish, subscribe)
	var err error
	g.Runner, err = single.New(single.Options{
		Server: server, Prefix: "sallyport", Records: g.records, Logger: testutil.Logger(t),
		Serve: func(_ context.Context, id string, conn io.ReadWriteCloser) error {
			if id == "broken" {
				return errors.New("it has no database")
			}
			_, err := conn.Write([]byte("\n"))
			for lines := bufio.NewScanner(conn); err == nil && lines.Scan(); {
				_, err = io.WriteString(conn, name+": "+lines.Text()+"\n")
			}
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() }) // never an error
	return g
}

// join joins an upstream.
func (g *gate) join(t *testing.T, id string) (io.ReadWriteCloser, <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually)
	defer cancel()
	there, lost, err := g.Join(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return there, lost
}

// runs joins an upstream, which this gateway must run.
func (g *gate) runs(t *testing.T, id string) <-chan struct{} {
	t.Helper()
	there, lost := g.join(t, id)
	if there != nil {
		t.Fatalf("another gateway runs %s", id)
	}
	return lost
}

// reaches joins an upstream, which another gateway must run.
func (g *gate) reaches(t *testing.T, id, name string) io.ReadWriteCloser {
	t.Helper()
	there, _ := g.join(t, id)
	if there == nil {
		t.Fatalf("this gateway runs %s", id)
	}
	if _, err := io.WriteString(there, "hello\n"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(name)+len(": hello\n"))
	if _, err := io.ReadFull(there, got); err != nil || string(got) != name+": hello\n" {
		t.Fatalf("%q, %v", got, err)
	}
	return there
}

// wantEnded checks that a connection to another gateway has ended.
func wantEnded(t *testing.T, there io.Reader) {
	t.Helper()
	if n, err := there.Read(make([]byte, 1)); err == nil {
		t.Errorf("the connection has not ended: it still has %d bytes", n)
	}
}

// TestJoin: the first gateway runs an upstream, and the next one reaches it there until the first ends.
func TestJoin(t *testing.T) {
	t.Parallel()
	c := natscluster.Start(t, 1)
	a, b := open(t, c, "a"), open(t, c, "b")
	lost := a.runs(t, "one")
	a.runs(t, "one")
	b.runs(t, "two")
	there := b.reaches(t, "one", "a")
	a.reaches(t, "two", "b")

	a.runs(t, "broken")
	if _, _, err := b.Join(t.Context(), "broken"); err == nil || !strings.Contains(err.Error(), "it has no database") {
		t.Errorf("the error of an upstream that cannot be connected is %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	wantEnded(t, there)
	b.runs(t, "one")
	select {
	case <-lost:
		t.Error("a gateway that ends has lost its upstream")
	default:
	}
}

// TestGivenUp: a gateway without the store gives up what it runs, and has it again when the store answers.
func TestGivenUp(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	a, b := open(t, c, "a"), open(t, c, "b")
	lost := a.runs(t, "one")
	there := b.reaches(t, "one", "a")
	c.Signal(t, 0, syscall.SIGSTOP)
	select {
	case <-lost:
	case <-time.After(eventually):
		t.Error("the upstream is not given up")
	}
	limited, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, _, err := a.Join(limited, "one"); err == nil {
		t.Error("an upstream is joined without the store")
	}
	c.Signal(t, 0, syscall.SIGCONT)
	wantEnded(t, there)
	testutil.Eventually(t, "the upstream is joined again", eventually, func() bool {
		_, _, err := a.Join(t.Context(), "one")
		return err == nil
	})
	b.reaches(t, "one", "a")
}

// TestCheckHeld: a gateway that was stopped gives up only what another one has claimed.
func TestCheckHeld(t *testing.T) {
	t.Parallel()
	c := natscluster.Start(t, 1)
	a, b := open(t, c, "a"), open(t, c, "b")
	lost := map[string]<-chan struct{}{}
	for _, id := range []string{"one", "two", "three", "four"} {
		lost[id] = a.runs(t, id)
	}
	claims, err := b.records.Bucket("claims_upstreams", store.Limits{Records: 100_000, Bytes: 32 << 20, Record: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claims.Put(t.Context(), store.Key{"two"}, []byte(b.records.Self())); err != nil {
		t.Fatal(err)
	}
	a.CheckHeld()
	for id, lost := range lost {
		select {
		case <-lost:
			if id != "two" {
				t.Errorf("%s is given up, although no other gateway has claimed it", id)
			}
		default:
			if id == "two" {
				t.Error("what another gateway has claimed is not given up")
			}
		}
	}
}

// TestLeave: what a gateway cannot start, another one runs.
func TestLeave(t *testing.T) {
	t.Parallel()
	c := natscluster.Start(t, 1)
	a, b := open(t, c, "a"), open(t, c, "b")
	lost := a.runs(t, "one")
	a.runs(t, "two")
	there := b.reaches(t, "one", "a")
	a.Leave(t.Context(), "one")
	a.Leave(t.Context(), "unknown")
	<-lost
	wantEnded(t, there)
	b.runs(t, "one")
	a.reaches(t, "one", "b")
	b.reaches(t, "two", "a")
}

// TestHostileDial: what is no request for a connection is ignored, and credentials without the rights reach nothing.
func TestHostileDial(t *testing.T) {
	t.Parallel()
	c := natscluster.Start(t, 1)
	a, b := open(t, c, "a"), open(t, c, "b")
	a.runs(t, "one")
	conn, unanswered, err := c.Server("raw").Connect()
	if err := errors.Join(err, unanswered); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	dial := "_GATEWAYS.sallyport.dial." + a.records.Self()
	for _, data := range []string{"", " ", "one", "x one", strings.Repeat("A", 26), strings.Repeat("A", 26) + " ", strings.Repeat("A", 1<<20) + " one", "*.> one", ">.AAAAAAAAAAAAAAAAAAAAAAA one"} {
		if err := conn.Publish(dial, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	b.reaches(t, "one", "a")

	publish, subscribe := single.Rights("other")
	server := c.Server("stranger")
	server.Creds = c.User(t, "stranger", publish, subscribe)
	stranger, unanswered, err := server.Connect()
	if err := errors.Join(err, unanswered); err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	sub, err := stranger.SubscribeSync("_GATEWAYS.sallyport.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stranger.Publish(dial, []byte(strings.Repeat("B", 26)+" one")), stranger.Flush()); err != nil {
		t.Fatal(err)
	}
	b.reaches(t, "one", "a")
	if m, err := sub.NextMsg(100 * time.Millisecond); err == nil {
		t.Errorf("a client without the rights reads %q", m.Subject)
	}
}
