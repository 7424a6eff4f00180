package yamledit_test

import (
	"errors"
	"strings"
	"testing"

	"sallyport/internal/yamledit"
)

const settings = `# my settings
upstreams:
  # the notes
  notes:
    command: npx # from npm
    args: [-y, notes]

    # only in the office
    timeout: 30s
  # the tickets
  tickets: {url: "https://tickets.example.com/mcp"}

# who may do what
policy:
  default: ask
# rules in order
  rules:
    - name: reads   # all of them
      then: allow

# the last key
audit: {keep: 90d}
`

func accept([]byte) error { return nil }

func TestBlock(t *testing.T) {
	for _, test := range []struct {
		path         []string
		text         string
		line, indent int
	}{
		{[]string{"upstreams", "notes"}, "notes:\n  command: npx # from npm\n  args: [-y, notes]\n\n  # only in the office\n  timeout: 30s\n", 4, 2},
		{[]string{"upstreams", "tickets"}, "tickets: {url: \"https://tickets.example.com/mcp\"}\n", 11, 2},
		{[]string{"policy"}, "policy:\n  default: ask\n# rules in order\n  rules:\n    - name: reads   # all of them\n      then: allow\n", 14, 0},
	} {
		got, err := yamledit.BlockAt([]byte(settings), test.path...)
		if err != nil || got.Text != test.text || got.Line != test.line || got.Indent != test.indent {
			t.Errorf("%v is %+v, %v", test.path, got, err)
		}
		same, err := yamledit.SetBlock([]byte(settings), strings.ReplaceAll(got.Text, "\n", "\r\n"), accept, test.path...)
		if err != nil || string(same) != settings {
			t.Errorf("%v set to its own text gives %q, %v", test.path, same, err)
		}
	}
}

func TestSetBlock(t *testing.T) {
	refused := errors.New("refused")
	for _, test := range []struct {
		data, text string
		path       []string
		want       string
		err        error
	}{
		{settings, "policy: {default: deny} # all\n", []string{"policy"}, strings.Replace(settings, settings[strings.Index(settings, "policy:"):strings.Index(settings, "\n# the last")], "policy: {default: deny} # all\n", 1), nil},
		{settings, "notes:\n  # none\n  url: http://x", []string{"upstreams", "notes"},
			strings.Replace(settings, settings[strings.Index(settings, "  notes:"):strings.Index(settings, "  # the tickets")], "  notes:\n    # none\n    url: http://x\n", 1), nil},
		{"upstreams: {}", "policy:\n  default: ask\n", []string{"policy"}, "upstreams: {}\npolicy:\n  default: ask\n", nil},
		{"upstreams: {}\n# the end\n", "policy:\n  default: ask\n", []string{"policy"}, "upstreams: {}\n# the end\npolicy:\n  default: ask\n", nil},
		{"a: 1\r\npolicy:\r\n  default: ask\r\nb: 2\r\n", "policy:\n  # no\n  default: deny\n", []string{"policy"}, "a: 1\r\npolicy:\r\n  # no\r\n  default: deny\r\nb: 2\r\n", nil},
		{"", "policy: {}\n", []string{"policy"}, "policy: {}\n", nil},
		{settings, "policy: {}\nhttp: {require_token: false}\n", []string{"policy"}, "", yamledit.ErrOther},
		{settings, "other: {}\n", []string{"policy"}, "", yamledit.ErrOther},
		{settings, "", []string{"policy"}, "", yamledit.ErrOther},
		{settings, "policy: {}\npolicy: {default: allow}\n", []string{"policy"}, "", yamledit.ErrOther},
		{settings, "notes: {url: x}\nmore: {url: y}\n", []string{"upstreams", "notes"}, "", yamledit.ErrOther},
		{settings, "policy: {}\n---\na: b\n", []string{"policy"}, "", yamledit.ErrUnsafe},
		{settings, "none: {url: x}\n", []string{"upstreams", "none"}, "", yamledit.ErrMissing},
		{"upstreams: {a: {url: x}}\n", "a: {url: y}\n", []string{"upstreams", "a"}, "", yamledit.ErrFlow},
		{"{upstreams: {}}\n", "policy: {}\n", []string{"policy"}, "", yamledit.ErrMissing},
	} {
		got, err := yamledit.SetBlock([]byte(test.data), test.text, accept, test.path...)
		if !errors.Is(err, test.err) || string(got) != test.want {
			t.Errorf("%v set to %q gives\n%s\n%v, want\n%s\n%v", test.path, test.text, got, err, test.want, test.err)
		}
	}
	if _, err := yamledit.SetBlock([]byte(settings), "policy: {", func([]byte) error { return refused }, "policy"); !errors.Is(err, refused) {
		t.Errorf("the check comes first: %v", err)
	}
	for _, path := range [][]string{{"none"}, {"upstreams", "none"}, {"audit", "keep"}} {
		if b, err := yamledit.BlockAt([]byte(settings), path...); err == nil || b.Line != strings.Count(settings, "\n")+1 {
			t.Errorf("%v has the block %+v, %v", path, b, err)
		}
	}
}

// FuzzSetBlock: what is set as a block is that block, and the rest of the file is as it was.
func FuzzSetBlock(f *testing.F) {
	f.Add(settings, "policy:\n  default: ask\n")
	f.Add("a: |\n  policy: x\npolicy: 1\n", "policy: 2")
	f.Fuzz(func(t *testing.T, data, text string) {
		made, err := yamledit.SetBlock([]byte(data), text, accept, "policy")
		if err != nil {
			return
		}
		if _, err := yamledit.BlockAt(made, "policy"); err != nil {
			t.Fatalf("%q set to %q gives %q: %v", data, text, made, err)
		}
	})
}
