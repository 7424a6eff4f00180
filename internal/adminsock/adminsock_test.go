package adminsock_test

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/adminsock"
	"sallyport/internal/testutil"
)

// echo answers each connection with one letter until the listener is closed.
func echo(t *testing.T, l net.Listener) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("."))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
}

func listen(t *testing.T, data string) *adminsock.Listener {
	t.Helper()
	l, err := adminsock.Listen(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, l)
	return l
}

// answers reports whether somebody speaks at a socket.
func answers(t *testing.T, path string) bool {
	t.Helper()
	conn, err := adminsock.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	n, err := conn.Read(make([]byte, 1))
	return n == 1 && err == nil
}

// TestSockets: several processes have a socket each, those of the dead go, and nobody else can reach them.
func TestSockets(t *testing.T) {
	data := filepath.Join(testutil.ShortDir(t), "data")
	if found := adminsock.Sockets(data); found != nil {
		t.Errorf("%v before anybody listens", found)
	}
	one, dead := listen(t, data), listen(t, data)
	_ = dead.UnixListener.Close() // as the end of a process that is killed
	listen(t, data)
	found := adminsock.Sockets(data)
	if len(found) != 2 || !answers(t, found[0]) || !answers(t, found[1]) {
		t.Fatalf("found %v", found)
	}
	entries, _ := os.ReadDir(filepath.Join(data, adminsock.Folder))
	if len(entries) != 2 {
		t.Errorf("left in the folder: %v", entries)
	}
	for _, path := range append(found, filepath.Dir(found[0])) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	if err := one.Close(); err != nil || len(adminsock.Sockets(data)) != 1 {
		t.Errorf("closed: %v, found %v", err, adminsock.Sockets(data))
	}
}

// TestLongPath: where people keep their data is not limited by what a socket's address has room for.
func TestLongPath(t *testing.T) {
	data := filepath.Join(testutil.ShortDir(t), strings.Repeat("long/", 40))
	listen(t, data)
	if found := adminsock.Sockets(data); len(found) != 1 || !answers(t, found[0]) {
		t.Fatalf("found %v", found)
	}
}

// TestFolderOfOthers: where others could look in, or had made the folder, nothing is served and nothing asked.
func TestFolderOfOthers(t *testing.T) {
	data := testutil.ShortDir(t)
	listen(t, data)
	dir := filepath.Join(data, adminsock.Folder)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if found := adminsock.Sockets(data); found != nil {
		t.Errorf("found %v", found)
	}
	if _, err := adminsock.Listen(data, nil); err == nil || !strings.Contains(err.Error(), "nobody else can read") {
		t.Errorf("listens in a folder of everybody's: %v", err)
	}
	elsewhere := testutil.ShortDir(t)
	if err := os.Symlink(dir, filepath.Join(elsewhere, adminsock.Folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := adminsock.Listen(elsewhere, nil); err == nil {
		t.Error("listens behind a link")
	}
}

// TestOtherUser: another user who gets at the socket all the same is not heard.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	var log bytes.Buffer
	data := testutil.ShortDir(t)
	l, err := adminsock.Listen(data, &adminsock.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	echo(t, l)
	path := adminsock.Sockets(data)[0]
	for _, open := range []string{data, filepath.Dir(path), path} {
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if got := as(t, 65534, path); got != "" {
		t.Errorf("user 65534 hears %q", got)
	}
	if got := as(t, 0, path); got != "." {
		t.Errorf("we hear %q", got)
	}
	_ = l.Close()
	if !strings.Contains(log.String(), `msg="control connection refused" uid=65534`) {
		t.Errorf("log: %s", log.String())
	}
}
