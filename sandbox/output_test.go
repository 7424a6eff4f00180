//go:build linux

package sandbox

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// naive is what clip does, said again over the whole stream.
func naive(stream []byte, limit int) Output {
	show := func(b []byte) string {
		return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
	}
	if len(stream) <= limit {
		return Output{Text: show(stream)}
	}
	head, tail := stream[:limit*3/4], stream[len(stream)-(limit-limit*3/4):]
	for len(head) > 0 && !utf8.Valid(head[max(0, len(head)-utf8.UTFMax):]) && !endsWithRune(head) {
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	cut := len(stream) - len(head) - len(tail)
	return Output{Text: fmt.Sprintf("%s\n[... %d bytes cut ...]\n%s", show(head), cut, show(tail)), Cut: int64(cut)}
}

func endsWithRune(b []byte) bool {
	for n := 1; n <= min(utf8.UTFMax, len(b)); n++ {
		if utf8.Valid(b[len(b)-n:]) {
			return true
		}
	}
	return false
}

func TestClipIsLikeTheNaiveOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := []string{"a", "é", "€", "😀", "\n", "\x00", "0123456789"}
	for round := range 3000 {
		limit := random.IntN(60)
		var stream []byte
		c := newOutputBuffer(limit, 1<<30, func() { t.Error("flood") })
		for range random.IntN(12) {
			var chunk []byte
			for range random.IntN(20) {
				chunk = append(chunk, letters[random.IntN(len(letters))]...)
			}
			for len(chunk) > 0 { // writes end anywhere, in the middle of a character too
				n := 1 + random.IntN(len(chunk))
				if written, err := c.Write(chunk[:n]); written != n || err != nil {
					t.Fatalf("wrote %d of %d, %v", written, n, err)
				}
				stream, chunk = append(stream, chunk[:n]...), chunk[n:]
			}
		}
		if got, want := c.output(), naive(stream, limit); got != want {
			t.Fatalf("round %d, limit %d, stream of %d bytes:\ngot  %+v\nwant %+v", round, limit, len(stream), got, want)
		}
		if len(c.head) > limit || cap(c.tail) > 8*limit+600 {
			t.Fatalf("limit %d keeps %d + %d bytes", limit, len(c.head), cap(c.tail))
		}
	}
}

func TestClip(t *testing.T) {
	for _, test := range []struct {
		name, stream string
		limit        int
		want         Output
	}{
		{"nothing", "", 8, Output{}},
		{"up to the limit", "12345678", 8, Output{Text: "12345678"}},
		{"one more", "123456789", 8, Output{Text: "123456\n[... 1 bytes cut ...]\n89", Cut: 1}},
		{"nothing is kept", "123", 0, Output{Text: "\n[... 3 bytes cut ...]\n", Cut: 3}},
		{"a character across the first cut", "12345é789", 8, Output{Text: "12345\n[... 3 bytes cut ...]\n89", Cut: 3}},
		{"a character across the second cut", "1234567€", 8, Output{Text: "123456\n[... 4 bytes cut ...]\n", Cut: 4}},
		{"no text", "\xff\x00\xfe", 8, Output{Text: "\uFFFD\uFFFD\uFFFD"}},
		{"no text at the cuts", strings.Repeat("\xff", 20), 8, Output{Text: "\uFFFD\n[... 16 bytes cut ...]\n\uFFFD", Cut: 16}},
	} {
		c := newOutputBuffer(test.limit, 1<<20, func() {})
		_, _ = c.Write([]byte(test.stream))
		if got := c.output(); got != test.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", test.name, got, test.want)
		}
	}
}

// endless is a stream that never stops by itself.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, fmt.Errorf("the end")
	}
	e.left--
	return len(p), nil
}

func TestFloodIsToldOnce(t *testing.T) {
	floods := 0
	c := newOutputBuffer(10, 100, func() { floods++ })
	_, _ = c.Write(make([]byte, 100))
	if floods != 0 {
		t.Error("a flood at the limit")
	}
	_, _ = c.Write([]byte("x"))
	c.readAll(&endless{left: 1000}) // goes on reading: who floods must not be blocked, but stopped
	if floods != 1 || c.total < 1000*1024 {
		t.Errorf("%d floods, %d bytes read", floods, c.total)
	}
	if cap(c.tail) > 256<<10 {
		t.Errorf("%d bytes are kept of it", cap(c.tail))
	}
}
