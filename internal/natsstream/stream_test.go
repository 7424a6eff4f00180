package natsstream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"sallyport/internal/natsconn"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	os.Exit(m.Run())
}

const eventually = 40 * time.Second

// TestStream has one server for all parts.
func TestStream(t *testing.T) {
	c := natscluster.Start(t, 1)
	conn, unanswered, err := natsconn.Server{URL: c.URL(), Creds: c.RawCreds, CA: c.CA}.Connect()
	if err := errors.Join(err, unanswered); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	t.Run("lossy", func(t *testing.T) { sendOverLossy(t, conn) })
	t.Run("hostile", func(t *testing.T) { refuseHostile(t, conn) })
	t.Run("idle", func(t *testing.T) { refuseIdle(t, conn) })
	t.Run("silent", func(t *testing.T) { missPeer(t, conn) })
	t.Run("close", func(t *testing.T) { closeBoth(t, conn) })
}

func open(t *testing.T, conn *nats.Conn, to, from string, set Times) *Stream {
	t.Helper()
	s, err := Open(conn, to, from, set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close() // never an error
		<-s.done
	})
	return s
}

// quickTimes send again soon.
func quickTimes() Times {
	return Times{Beat: 50 * time.Millisecond, Silence: time.Minute, Absence: time.Minute, Linger: 20 * time.Millisecond}
}

// sendOverLossy sends in both directions while some messages are lost and some are repeated.
func sendOverLossy(t *testing.T, conn *nats.Conn) {
	t.Helper()
	relay := func(from, to string) {
		count := 0
		if _, err := conn.Subscribe(from, func(m *nats.Msg) {
			if count++; count%7 == 3 {
				return
			}
			for range 1 + count%11/10 {
				_ = conn.Publish(to, m.Data) // what is lost is sent again
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	relay("lossy.a.out", "lossy.b.in")
	relay("lossy.b.out", "lossy.a.in")
	a, b := open(t, conn, "lossy.a.out", "lossy.a.in", quickTimes()), open(t, conn, "lossy.b.out", "lossy.b.in", quickTimes())
	data := make([]byte, 3*window/2+7)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(data) // never an error
	errs := make(chan error, 2)
	for _, s := range []*Stream{a, b} {
		go func() {
			_, err := s.Write(data)
			errs <- err
		}()
	}
	for _, s := range []*Stream{a, b} {
		got := make([]byte, len(data))
		if _, err := io.ReadFull(s, got); err != nil || !bytes.Equal(got, data) {
			t.Errorf("read: %v, equal: %v", err, bytes.Equal(got, data))
		}
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func message(kind byte, offset uint64, content []byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{kind}, offset), content...)
}

// refuseIdle sends messages that bring nothing new, without end.
func refuseIdle(t *testing.T, conn *nats.Conn) {
	t.Helper()
	s := open(t, conn, "idle.out", "idle.in", Times{Beat: time.Hour, Silence: time.Hour, Absence: time.Hour})
	for range maxIdle + 1 {
		s.receive(&nats.Msg{Data: message(kindAck, 0, binary.BigEndian.AppendUint64(nil, window))})
	}
	<-s.done
	if _, err := s.Write([]byte("x")); !errors.Is(err, errFlood) {
		t.Error(err)
	}
}

// refuseHostile says to a stream what a peer may not say. Each ends that stream only.
func refuseHostile(t *testing.T, conn *nats.Conn) {
	t.Helper()
	room := binary.BigEndian.AppendUint64(nil, window)
	large := make([]byte, window/4)
	good := open(t, conn, "good.out", "good.in", quickTimes())
	for name, c := range map[string]struct {
		messages [][]byte
		want     error
	}{
		"flood":            {[][]byte{message(kindData, 0, large), message(kindData, window/4, large), message(kindData, window/2, large), message(kindData, 3*window/4, large), message(kindData, window, []byte("x"))}, errFlood},
		"beyond the room":  {[][]byte{message(kindData, window, []byte("x"))}, errFlood},
		"end of numbers":   {[][]byte{message(kindData, 1<<64-1, []byte("xx"))}, errFlood},
		"after the end":    {[][]byte{message(kindEnd, 1, nil), message(kindData, 1, []byte("x"))}, errFlood},
		"another end":      {[][]byte{message(kindEnd, 1, nil), message(kindEnd, 2, nil)}, errForged},
		"what nobody sent": {[][]byte{message(kindAck, 1, room)}, errForged},
		"short":            {[][]byte{{kindData}}, errForged},
		"kind":             {[][]byte{message(99, 0, nil)}, errForged},
		"half an ack":      {[][]byte{message(kindAck, 0, room[:7])}, errForged},
		"text":             {[][]byte{message(kindReset, 0, []byte("no\x1b[31m"))}, nil},
	} {
		s := open(t, conn, "bad.out", "bad.in", quickTimes())
		for _, data := range c.messages {
			s.receive(&nats.Msg{Data: data})
		}
		<-s.done
		_, err := s.Write([]byte("x"))
		if err == nil || c.want != nil && !errors.Is(err, c.want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", name, err)
		}
		if n := s.in.data.Len(); n > window {
			t.Errorf("%s: keeps %d bytes", name, n)
		}
	}
	for range 3 { // replays
		good.receive(&nats.Msg{Data: message(kindData, 0, []byte("abc"))})
		good.receive(&nats.Msg{Data: message(kindData, 1, []byte("bcd"))})
		good.receive(&nats.Msg{Data: message(kindData, 9, []byte("later"))})
	}
	got := make([]byte, 100)
	if n, err := good.Read(got); err != nil || string(got[:n]) != "abcd" {
		t.Errorf("%q, %v", got[:n], err)
	}
}

// missPeer wants that a stream ends when its peer is gone: soon if the server knows that nobody listens.
func missPeer(t *testing.T, conn *nats.Conn) {
	t.Helper()
	set := Times{Beat: 10 * time.Millisecond, Silence: time.Hour, Absence: 30 * time.Millisecond, Linger: time.Second}
	gone := open(t, conn, "gone.out", "gone.in", set)
	gone.receive(&nats.Msg{Data: message(kindAck, 0, binary.BigEndian.AppendUint64(nil, window))})
	if _, err := gone.Read(make([]byte, 1)); !errors.Is(err, errPeerGone) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := conn.Subscribe("mute.out", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	set.Silence, set.Absence = set.Absence, time.Hour
	mute := open(t, conn, "mute.out", "mute.in", set)
	if _, err := mute.Read(make([]byte, 1)); !errors.Is(err, errPeerGone) {
		t.Errorf("a silent peer: %v", err)
	}
}

// closeBoth wants that what was written before Close arrives, and then the end.
func closeBoth(t *testing.T, conn *nats.Conn) {
	t.Helper()
	set := quickTimes()
	set.Linger = time.Minute
	a, b := open(t, conn, "close.b", "close.a", set), open(t, conn, "close.a", "close.b", set)
	if _, err := a.Write([]byte("the last words")); err != nil {
		t.Fatal(err)
	}
	_ = a.Close() // never an error
	if all, err := io.ReadAll(b); err != nil || string(all) != "the last words" {
		t.Errorf("%q, %v", all, err)
	}
	if _, err := b.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("write to a closed stream: %v", err)
	}
	testutil.Eventually(t, "the closed side knows that all has come", eventually, func() bool {
		select {
		case <-a.done:
			return true
		default:
			return false
		}
	})
	if _, err := a.Read(make([]byte, 1)); err == nil {
		t.Error("a closed stream is read")
	}
}
