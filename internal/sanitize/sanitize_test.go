package sanitize_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"sallyport/internal/sanitize"
)

func TestLine(t *testing.T) {
	for _, test := range []struct {
		in, want string
		max      int
	}{
		{"plain", "plain", 20},
		{"two\r\nlines\tand  spaces ", "two lines and spaces", 40},
		{"\x1b[31mred\x1b[0m \u009b1mbold \x1b[38;5;1mno. 1", "red bold no. 1", 40},
		{"\x1b[ \x1b]0;title\x07 \x1b", "[ ]0;title", 40},
		{"a\u202eb\u200bc\U000E0041d", "abcd", 40},
		{"a\u2028b\u0085c", "a b c", 40},
		{"NUL\x00 and bad \xff", "NUL and bad \uFFFD", 40},
		{"日本語テキスト", "日本語…", 4},
		{"👨‍👩‍👧 family", "👨‍👩‍👧 family", 40},
	} {
		if got := sanitize.Line(test.in, test.max); got != test.want {
			t.Errorf("Line(%q, %d) = %q, want %q", test.in, test.max, got, test.want)
		}
	}
}

func TestTextKeepsLines(t *testing.T) {
	if got := sanitize.Text("a\r\n\tb\x07\n", 40); got != "a\n\tb" {
		t.Errorf("got %q", got)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("\x1b]0;title\x07", 10)
	f.Add(strings.Repeat("x\u200b", 1000), 3)
	f.Fuzz(func(t *testing.T, s string, max int) {
		max = 1 + (max&0xff+256)%256
		got := sanitize.Line(s, max)
		if utf8.RuneCountInString(got) > max || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || sanitize.Hidden(r) }) {
			t.Errorf("Line(%q, %d) = %q", s, max, got)
		}
	})
}
