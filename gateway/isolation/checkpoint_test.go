//go:build linux

package isolation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/isolation"
)

// banner is what the hostile server prints to stderr when it starts from nothing.
const banner = "arguments: []"

// TestCheckpoint starts a server from its checkpoint, and checks what must be new then, and what makes a checkpoint invalid.
func TestCheckpoint(t *testing.T) {
	dir, store := t.TempDir(), t.TempDir()
	if err := os.Mkdir(dir+"/below", 0o700); err != nil {
		t.Fatal(err)
	}
	launcher := launcherWith(t, isolation.Options{Checkpoints: store})
	code, err := os.ReadFile("testdata/server.py")
	if err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	write := func(first string) {
		t.Helper()
		past = past.Add(time.Minute)
		at := filepath.Join(dir, "server.py")
		if err := os.WriteFile(at, append([]byte(first+"\n"), code...), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(at, past, past); err != nil {
			t.Fatal(err)
		}
	}
	// begin starts the server and returns the value of an expression, and whether the program started from nothing.
	begin := func(secret, value string) (stderr, answer string) {
		t.Helper()
		s := open(t, launcher, parse(t, "command: python3\nargs: [-B, "+dir+"/server.py]\nenv: {SECRET: "+secret+"}\nisolate: {mounts: [{path: "+dir+", mode: rw}]}"))
		answer = text(run(t, s, "import os, time, uuid; answer = "+value))
		stderr = s.State().Stderr
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		return stderr, answer
	}
	write("import uuid; uuid.uuid4()")
	const random = "str(uuid.uuid4()) + ' ' + os.urandom(8).hex() + ' ' + os.environ['SECRET']"
	stderr, value := begin("one", random)
	if strings.Count(stderr, banner) != 1 {
		t.Errorf("a program that is recorded starts once: %q", stderr)
	}
	seen := map[string]bool{}
	for part := range strings.FieldsSeq(value) {
		seen[part] = true
	}
	for range 2 {
		stderr, value = begin("one", random)
		parts := strings.Fields(value)
		if strings.Contains(stderr, banner) || len(parts) != 3 || seen[parts[0]] || seen[parts[1]] || parts[2] != "one" {
			t.Errorf("from a checkpoint: %q, %s, seen %v", stderr, value, seen)
		}
		seen[parts[0]], seen[parts[1]] = true, true
	}
	if _, value = begin("one", fmt.Sprintf("abs(time.time() - %d) < 60 and open('%s/new', 'w').write('x')", time.Now().Unix(), dir+"/below")); value != "1" {
		t.Errorf("clock and files: %s", value)
	}
	for _, test := range []struct {
		name, secret, first, want string
		prepare                   func()
	}{
		{name: "still", secret: "one"},
		{name: "a damaged image", secret: "one", want: banner, prepare: func() { damage(t, store) }},
		{name: "another secret", secret: "two", want: banner},
		{name: "another program", secret: "two", first: "import uuid", want: banner},
		{name: "its checkpoint", secret: "two"},
		{name: "the network", secret: "two", first: "import socket\ntry: socket.create_connection(('192.0.2.1', 80), 1)\nexcept OSError: pass", want: "without a checkpoint: it uses the network before it is initialized "},
		{name: "the network again", secret: "two", want: "without a checkpoint: it uses the network"},
		{name: "a file", secret: "two", first: "open('" + dir + "/state', 'a').write('x')", want: "without a checkpoint: it changes " + dir + "/state before it is initialized"},
		{name: "OpenSSL", secret: "two", first: "import ssl", want: "without a checkpoint: it has loaded OpenSSL"},
		{name: "no answer", secret: "two", first: "import sys; line = sys.stdin.readline(); 'sallyport-checkpoint' in line and sys.exit(3)", want: "without a checkpoint: it does not answer|without a checkpoint: it ended"},
	} {
		if test.first != "" {
			write(test.first)
		}
		if test.prepare != nil {
			test.prepare()
		}
		switch stderr, _ := begin(test.secret, "1"); {
		case test.want == "" && strings.Contains(stderr, banner):
			t.Errorf("%s: it started from nothing: %q", test.name, stderr)
		case test.want != "" && !matches(test.want, stderr):
			t.Errorf("%s: %q, want %s", test.name, stderr, test.want)
		}
	}
	if info, err := os.Stat(store); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others can read the checkpoints: %v, %v", info.Mode(), err)
	}
	if kept, _ := filepath.Glob(store + "/*"); len(kept) != 1 {
		t.Errorf("one upstream has %q", kept)
	}
}

// TestNodeCheckpoint checks that a server on Node.js has new random numbers after each start from its checkpoint.
func TestNodeCheckpoint(t *testing.T) {
	dir, launcher := t.TempDir(), launcherWith(t, isolation.Options{Checkpoints: t.TempDir()})
	script := "const crypto = require('crypto'); crypto.randomBytes(8); console.error('banner');" +
		strings.Replace(strings.TrimPrefix(nodeServer, "#!/usr/bin/env node"), "name: process.argv.slice(2).join('_')", "name: crypto.randomBytes(8).toString('hex') + crypto.generateKeyPairSync('x25519').publicKey.export({format: 'jwk'}).x", 1)
	at := filepath.Join(dir, "server.js")
	if err := os.WriteFile(at, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(at, past, past); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range 3 {
		s := open(t, launcher, parse(t, "command: node\nargs: ["+at+"]\nisolate: {mounts: [{path: "+dir+"}]}"))
		if err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		name, stderr := s.Tools()[0].Wire, s.State().Stderr
		if seen[name[:16]] || seen[name[16:]] {
			t.Errorf("%s is not new: %v", name, seen)
		}
		if seen[name[:16]], seen[name[16:]] = true, true; strings.Contains(stderr, "banner") != (i == 0) {
			t.Errorf("start %d: %q", i, stderr)
		}
		_ = s.Close()
	}
}

// damage changes one byte of each image.
func damage(t *testing.T, store string) {
	t.Helper()
	images, err := filepath.Glob(store + "/*/pages.img")
	if err != nil || len(images) != 1 {
		t.Fatalf("images: %q, %v", images, err)
	}
	data, err := os.ReadFile(images[0])
	if err == nil {
		data[len(data)/2] ^= 1
		err = os.WriteFile(images[0], data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
