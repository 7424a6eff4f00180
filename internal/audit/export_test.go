package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"sallyport/internal/store"
)

// Dir is where a log is.
func (l *Log) Dir() string { return l.dir }

// Rewrite changes a line as somebody would who knows how hashes are made.
func Rewrite(line []byte, old, with string) []byte {
	r, err := decode(line)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal([]byte(strings.Replace(string(line), old, with, 1)), &r.Event); err != nil {
		panic(err)
	}
	made, _, err := encode(r.Event, r.Prev)
	if err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(made, []byte("\n"))
}

// Honest reports whether each line has the hash that it says, which whoever knows how hashes are made can bring about.
func Honest(data []byte) (int, bool) {
	n := 0
	for line := range bytes.Lines(data) {
		if _, err := decode(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return n, false
		}
		n++
	}
	return n, true
}

// Tamper replaces the copy of a chain as somebody would who can write the store.
func Tamper(ctx context.Context, t *testing.T, in *store.Store, chain string, edit func(lines [][]byte) [][]byte) {
	t.Helper()
	m, err := NewMirror(in, chain, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]byte
	for line, err := range m.Lines(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, bytes.Clone(line))
	}
	if err := m.log.Remove(ctx, m.key); err != nil {
		t.Fatal(err)
	}
	for _, line := range edit(lines) {
		if _, err := m.log.Append(ctx, m.key, line); err != nil {
			t.Fatal(err)
		}
	}
}

// ForgeHead gives a chain the signed head of another one, or none for "".
func ForgeHead(ctx context.Context, t *testing.T, in *store.Store, chain, other string) {
	t.Helper()
	heads, err := headsOf(in)
	if err != nil {
		t.Fatal(err)
	}
	if other == "" {
		err = heads.Delete(ctx, store.Key{chain}, 0)
	} else if e, failed := heads.Get(ctx, store.Key{other}); failed != nil {
		err = failed
	} else {
		_, err = heads.Put(ctx, store.Key{chain}, bytes.Replace(e.Value, []byte(`{"chain":"`+other), []byte(`{"chain":"`+chain), 1))
	}
	if err != nil {
		t.Fatal(err)
	}
}
