package yamledit_test

import (
	"errors"
	"testing"

	"sallyport/internal/yamledit"
)

func TestPut(t *testing.T) {
	for in, want := range map[string]string{
		"upstreams: {}\n": "env_file: a b.env\nupstreams: {}\n",
		"# head\n\n# about\nupstreams:\n  a: {x: 1}":                   "# head\n\nenv_file: a b.env\n# about\nupstreams:\n  a: {x: 1}",
		"# yaml-language-server: $schema=s.json\n# x\nupstreams: {}\n": "# yaml-language-server: $schema=s.json\nenv_file: a b.env\n# x\nupstreams: {}\n",
		"# head\r\nupstreams: {}\r\n":                                  "env_file: a b.env\r\n# head\r\nupstreams: {}\r\n",
		"---\n\"upstreams\": {} # c\nx: |\n  # t\n...":                 "---\nenv_file: a b.env\n\"upstreams\": {} # c\nx: |\n  # t\n...",
	} {
		if got, err := yamledit.Put([]byte(in), "env_file", "a b.env"); err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
	for in, want := range map[string]error{
		"":                             yamledit.ErrFlow,
		"{upstreams: {}}":              yamledit.ErrFlow,
		"upstreams: {}\nenv_file: x\n": yamledit.ErrExists,
		"--- # c\nupstreams: {}\n":     nil,
	} {
		if got, err := yamledit.Put([]byte(in), "env_file", "y"); !errors.Is(err, want) {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
}
