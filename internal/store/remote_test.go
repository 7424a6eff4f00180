package store_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// TestRemote has one cluster of three servers for all parts, as each costs processor time.
func TestRemote(t *testing.T) {
	t.Parallel()
	c := natscluster.Start(t, 3)
	for _, part := range []struct {
		name string
		run  func(t *testing.T, c *natscluster.Cluster)
	}{
		{"conformance", remoteConformance}, {"refused", remoteRefused}, {"no room", remoteNoRoom}, {"foreign", remoteForeign}, {"claims", remoteClaims}, {"requests", remoteRequests}, {"late answer", remoteLateAnswer}, {"replicas", remoteReplicas}, {"moved", remoteMoved}, {"one killed", remoteOneKilled}, {"two killed", remoteTwoKilled},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(t, c) }) {
			return
		}
	}
}

func settings(t *testing.T, c *natscluster.Cluster) store.Remote {
	t.Helper()
	return store.Remote{Server: c.Server(t.Name()), Replicas: 3, Logger: testutil.Logger(t)}
}

func connect(t *testing.T, r store.Remote) *store.Store {
	t.Helper()
	s, err := store.Connect(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	eventually(t, "the store is available", func() bool { return s.Available() == nil })
	return s
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 40 s: %s", what)
		}
	}
}

func remoteConformance(t *testing.T, c *natscluster.Cluster) {
	t.Helper()
	storetest.Run(t, func(t *testing.T) *store.Store {
		t.Helper()
		return connect(t, settings(t, c))
	})
}

func remoteRefused(t *testing.T, c *natscluster.Cluster) {
	t.Helper()
	for name, change := range map[string]func(r *store.Remote){
		"no permissions": func(r *store.Remote) { r.Creds = c.NoCreds },
		"no credentials": func(r *store.Remote) { r.Creds = "" },
		"wrong CA":       func(r *store.Remote) { r.CA = c.OtherCA },
		"no such file":   func(r *store.Remote) { r.Creds = "missing.creds" },
		"not a CA":       func(r *store.Remote) { r.CA = c.Creds },
	} {
		r := settings(t, c)
		change(&r)
		s, err := store.Connect(r)
		if !errors.Is(err, store.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = s.Close() // the test has failed
		}
	}
	other := settings(t, c)
	other.Creds = c.OtherCreds // another account has streams of its own
	mine, theirs := connect(t, settings(t, c)), connect(t, other)
	b, err := mine.Bucket("secret", store.Limits{})
	if err == nil {
		_, err = b.Put(t.Context(), store.Key{"a"}, []byte("mine"))
	}
	foreign, err2 := theirs.Bucket("secret", store.Limits{})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if e, err := foreign.Get(t.Context(), store.Key{"a"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another account reads %q, %v", e.Value, err)
	}
}

// remoteNoRoom has a place that the servers cannot reserve: the error says so, and nothing says later that its records are lost.
func remoteNoRoom(t *testing.T, c *natscluster.Cluster) {
	t.Helper()
	s := connect(t, settings(t, c))
	b, err := s.Bucket("huge", store.Limits{Bytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), store.Key{"a"}, []byte("1")); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "max_file_store") {
		t.Errorf("a place of a TiB: %v", err)
	}
	raw, err := nats.Connect(c.URL(), nats.UserCredentials(c.RawCreds), nats.RootCAs(c.CA))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	js, err := raw.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	mark, err := js.GetLastMsg("sallyport_made", "sallyport.made.bucket_huge", nats.Context(t.Context()))
	if err != nil || mark.Header.Get("Sallyport-Deleted") == "" {
		t.Errorf("the mark of the place is %+v, %v", mark, err)
	}
}

// remoteForeign publishes messages of another program into the streams.
func remoteForeign(t *testing.T, c *natscluster.Cluster) {
	t.Helper()
	ctx := t.Context()
	s := connect(t, settings(t, c))
	log, err := s.Log("foreign", store.Limits{})
	b, err2 := s.Bucket("foreign", store.Limits{})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	put := func(key string) uint64 {
		revision, err := b.Put(ctx, store.Key{key}, []byte("own"))
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	put("kept")
	put("replaced")
	last, err := log.Append(ctx, store.Key{"run"}, []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := nats.Connect(c.URL(), nats.UserCredentials(c.RawCreds), nats.RootCAs(c.CA))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for _, subject := range []string{"bucket_foreign.replaced", "bucket_foreign.=!!", "bucket_foreign.x.y", "log_foreign.run", "log_foreign.=!!"} {
		if _, err := raw.Request("sallyport."+subject, []byte("{garbage"), 5*time.Second); err != nil {
			t.Fatal(subject, err)
		}
	}
	var keys []string
	for e, err := range b.List(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, e.Key[0])
	}
	if fmt.Sprint(keys) != "[kept]" {
		t.Errorf("keys %q", keys)
	}
	if _, err := b.Get(ctx, store.Key{"replaced"}); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if _, err := b.Create(ctx, store.Key{"replaced"}, []byte("new")); err != nil {
		t.Error(err)
	}
	if e, err := log.Last(ctx, store.Key{"run"}); err != nil || e.Revision != last {
		t.Errorf("last %+v, %v", e, err)
	}
	if _, err := log.AppendAfter(ctx, store.Key{"run"}, last, []byte("2")); err != nil {
		t.Error(err)
	}
	if _, err := log.AppendAfter(ctx, store.Key{"run"}, last, []byte("3")); !errors.Is(err, store.ErrConflict) {
		t.Error("the fence does not hold:", err)
	}
	var values []string
	for e, err := range log.Read(ctx, nil, 0) {
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, string(e.Value))
	}
	if fmt.Sprint(values) != "[1 2]" {
		t.Errorf("log %q", values)
	}
}

func remoteClaims(t *testing.T, c *natscluster.Cluster) {
	t.Helper()
	ctx, key := t.Context(), store.Key{"run", "1"}
	one, two := connect(t, settings(t, c)), connect(t, settings(t, c))
	first, err := one.Claims("test")
	second, err2 := two.Claims("test")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Take(ctx, key), first.Take(ctx, key)); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*store.HeldError](second.Take(ctx, key)); !ok {
		t.Fatal("two have the claim")
	}
	leading := make(chan string, 2)
	var work sync.WaitGroup
	defer work.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for name, s := range map[string]*store.Store{"one": one, "two": two} {
		work.Go(func() {
			_ = s.Lead(ctx, "test", func(ctx context.Context) error {
				leading <- name
				<-ctx.Done()
				return ctx.Err()
			})
		})
	}
	leader := <-leading
	if err := one.Close(); err != nil { // it leaves, so its claims are free at once
		t.Fatal(err)
	}
	eventually(t, "the claim is free", func() bool { return second.Take(t.Context(), key) == nil })
	if leader == "one" {
		if next := <-leading; next != "two" {
			t.Error(next)
		}
	}
}

func remoteRequests(t *testing.T, c *natscluster.Cluster) {
	t.Helper()
	asks, err := connect(t, settings(t, c)).Requests("test")
	if err != nil {
		t.Fatal(err)
	}
	did := make(chan string, 20)
	for _, name := range []string{"one", "two"} {
		serves, err := connect(t, settings(t, c)).Requests("test")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(serves.Serve(testutil.Logger(t), func(key store.Key, value []byte) bool {
			if key[0] != name {
				return false
			}
			did <- fmt.Sprintf("%q %s", key, value)
			return true
		}))
	}
	for _, name := range []string{"one", "two", "one"} {
		limited, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := asks.Ask(limited, store.Key{name, "run"}, []byte("stop"))
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := <-did, fmt.Sprintf("[%q \"run\"] stop", name); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	limited, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := asks.Ask(limited, store.Key{"nobody", "run"}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody does it: %v", err)
	}
	late, err := connect(t, settings(t, c)).Requests("test")
	if err != nil {
		t.Fatal(err)
	}
	end := late.Serve(testutil.Logger(t), func(key store.Key, _ []byte) bool {
		t.Errorf("%q was withdrawn or done, and is asked again", key)
		return true
	})
	time.Sleep(time.Second)
	end()
}

func remoteReplicas(t *testing.T, c *natscluster.Cluster) {
	t.Helper()
	one := settings(t, c)
	one.Replicas, one.Prefix, one.Creds = 1, "other", c.RawCreds
	s := connect(t, one)
	b, err := s.Bucket("grown", store.Limits{})
	if err == nil {
		_, err = b.Put(t.Context(), store.Key{"a"}, []byte("1"))
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	one.Replicas = 3
	s = connect(t, one)
	state, err := s.State(t.Context())
	if err != nil || len(state.Streams) < 3 {
		t.Fatalf("%+v, %v", state, err)
	}
	for _, stream := range state.Streams {
		if stream.Replicas != 3 {
			t.Errorf("%+v", stream)
		}
	}
}

// remoteLateAnswer withholds the answer to a fenced append until it is repeated.
func remoteLateAnswer(t *testing.T, c *natscluster.Cluster) {
	t.Helper()
	ctx := t.Context()
	slow := startLateServer(t, strings.Split(c.URL(), ",")[0])
	for _, replicas := range []int{1, 3} {
		set := settings(t, c)
		set.URL, set.Replicas, set.Prefix, set.Creds = slow.url, replicas, fmt.Sprint("late", replicas), c.RawCreds
		s := connect(t, set)
		log, err := s.Log("late", store.Limits{})
		b, err2 := s.Bucket("late", store.Limits{})
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		first, err := log.AppendAfter(ctx, store.Key{"run"}, 0, []byte("1"))
		made, err2 := b.Create(ctx, store.Key{"a"}, []byte("1"))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		resume := slow.hold()
		time.AfterFunc(2500*time.Millisecond, resume)
		var work sync.WaitGroup
		work.Go(func() {
			if _, err := b.Update(ctx, store.Key{"a"}, []byte("2"), made); err != nil {
				t.Errorf("update, %d replicas: %v", replicas, err)
			}
		})
		second, err := log.AppendAfter(ctx, store.Key{"run"}, first, []byte("2"))
		if err != nil {
			t.Errorf("append, %d replicas: %v", replicas, err)
		}
		work.Wait()
		if last, err := log.Last(ctx, store.Key{"run"}); err != nil || last.Revision != second || string(last.Value) != "2" {
			t.Errorf("%d replicas: appended %d, last is %+v, %v", replicas, second, last, err)
		}
		if _, err := log.AppendAfter(ctx, store.Key{"run"}, first, []byte("3")); !errors.Is(err, store.ErrConflict) {
			t.Error("the fence does not hold:", err)
		}
	}
}

// lateServer passes connections on to a server, and can withhold what the server sends.
type lateServer struct {
	url  string
	open sync.RWMutex
}

func startLateServer(t *testing.T, target string) *lateServer {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	l := &lateServer{url: "tls://" + listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", strings.TrimPrefix(target, "tls://"))
			if err != nil {
				_ = client.Close()
				continue
			}
			go l.pass(server, client, func() {})
			go l.pass(client, server, func() { l.open.RLock(); l.open.RUnlock() }) //nolint:staticcheck // waits while the lock is held
		}
	}()
	return l
}

func (l *lateServer) pass(to, from net.Conn, wait func()) {
	defer func() { _, _ = to.Close(), from.Close() }()
	for buffer := make([]byte, 64<<10); ; {
		n, err := from.Read(buffer)
		wait()
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

// hold withholds what the server sends until resume is called.
func (l *lateServer) hold() (resume func()) {
	l.open.Lock()
	return l.open.Unlock
}

// write appends under a fence until stop is closed, and returns what was acknowledged.
func writeUntil(t *testing.T, log *store.Log, key store.Key, stop <-chan struct{}) (acknowledged []string) {
	t.Helper()
	var last uint64
	for i := 0; ; i++ {
		select {
		case <-stop:
			return acknowledged
		default:
		}
		value := fmt.Sprint(i)
		revision, err := log.AppendAfter(t.Context(), key, last, []byte(value))
		if err != nil {
			t.Errorf("append %d: %v", i, err)
			return acknowledged
		}
		last, acknowledged = revision, append(acknowledged, value)
	}
}

func remoteOneKilled(t *testing.T, c *natscluster.Cluster) {
	t.Helper()
	s := connect(t, settings(t, c))
	log, err := s.Log("killed", store.Limits{})
	if err == nil {
		_, err = log.Append(t.Context(), store.Key{"first"}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		key, stop := store.Key{fmt.Sprint(round)}, make(chan struct{})
		done := make(chan []string, 1)
		go func() { done <- writeUntil(t, log, key, stop) }()
		time.Sleep(300 * time.Millisecond)
		state, err := s.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leader := c.Index(state.Stream("log_killed").Leader)
		c.Kill(t, leader)
		time.Sleep(2 * time.Second)
		c.Start(t, leader)
		time.Sleep(500 * time.Millisecond)
		close(stop)
		var read []string
		acknowledged := <-done
		for e, err := range log.Read(t.Context(), key, 0) {
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, string(e.Value))
		}
		if strings.Join(read, " ") != strings.Join(acknowledged, " ") || len(read) < 10 {
			t.Errorf("acknowledged %d, read %d:\n%q\n%q", len(acknowledged), len(read), acknowledged, read)
		}
		t.Logf("killed the leader, server %d, during %d writes", leader, len(read))
	}
}

func remoteTwoKilled(t *testing.T, c *natscluster.Cluster) {
	t.Helper()
	s := connect(t, settings(t, c))
	b, err := s.Bucket("two", store.Limits{})
	if err == nil {
		_, err = b.Put(t.Context(), store.Key{"a"}, []byte("1"))
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Kill(t, 0)
	c.Kill(t, 1)
	if _, err := b.Put(t.Context(), store.Key{"a"}, []byte("2")); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("without a majority: %v", err)
	}
	eventually(t, "the store is not available", func() bool { return errors.Is(s.Available(), store.ErrUnreachable) })
	c.Start(t, 0)
	eventually(t, "the store is available again", func() bool { return s.Available() == nil })
	c.Start(t, 1)
	if _, err := b.Put(t.Context(), store.Key{"a"}, []byte("3")); err != nil {
		t.Error(err)
	}
	if e, err := b.Get(t.Context(), store.Key{"a"}); err != nil || string(e.Value) != "3" {
		t.Errorf("%q, %v", e.Value, err)
	}
}
