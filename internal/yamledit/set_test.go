package yamledit

import (
	"errors"
	"strings"
	"testing"
)

const settable = `# ours
upstreams:
  toy: {command: toyserver, args: [alpha, "x}"]}   # the first

  # over HTTP
  tickets:
    url: 'https://example.com/mcp' # theirs
    env:
      A: one   # kept
      B: two
    timeout: 5s

# last
sandbox:
  timeout: 10s
`

// TestSetKey: one value changes, and no other byte; Unset brings the file back.
func TestSetKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value, old, changed string
		path                []string
		back                bool
	}{
		{"true", "toy: {command", "toy: {disabled: true, command", []string{"toy", "disabled"}, true},
		{"[beta]", `[alpha, "x}"]`, "[beta]", []string{"toy", "args"}, false},
		{"other", "command: toyserver", "command: other", []string{"toy", "command"}, false},
		{"true", "    timeout: 5s\n", "    timeout: 5s\n    disabled: true\n", []string{"tickets", "disabled"}, true},
		{"9s", "timeout: 5s", "timeout: 9s", []string{"tickets", "timeout"}, false},
		{`"https://b.example.com"`, "'https://example.com/mcp' # theirs", `"https://b.example.com" # theirs`, []string{"tickets", "url"}, false},
		{"three", "A: one   # kept", "A: three   # kept", []string{"tickets", "env", "A"}, false},
		{"three", "      B: two\n", "      B: two\n      C: three\n", []string{"tickets", "env", "C"}, true},
		{"{X: y}", "    env:\n      A: one   # kept\n      B: two\n", "    env: {X: y}\n", []string{"tickets", "env"}, false},
		{"v", "    timeout: 5s\n", "    timeout: 5s\n    headers: {H: v}\n", []string{"tickets", "headers", "H"}, true},
	} {
		path := append([]string{"upstreams"}, c.path...)
		want := replaced(t, settable, c.old, c.changed)
		got, err := SetKey([]byte(settable), c.value, path...)
		if err != nil || string(got) != want {
			t.Errorf("set %v to %s: %v\n%s", c.path, c.value, err, got)
			continue
		}
		if back, err := Unset(got, path...); c.back && (err != nil || string(back) != settable) {
			t.Errorf("unset %v: %v\n%s", c.path, err, back)
		}
	}
}

// TestUnset: a key goes with its value, the last one of a mapping with the mapping.
func TestUnset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		old, changed string
		path         []string
	}{
		{`, args: [alpha, "x}"]}`, "}", []string{"toy", "args"}},
		{"command: toyserver, ", "", []string{"toy", "command"}},
		{"    env:\n      A: one   # kept\n      B: two\n", "", []string{"tickets", "env"}},
		{"    timeout: 5s\n", "", []string{"tickets", "timeout"}},
	} {
		want := replaced(t, settable, c.old, c.changed)
		if got, err := Unset([]byte(settable), append([]string{"upstreams"}, c.path...)...); err != nil || string(got) != want {
			t.Errorf("unset %v: %v\n%s", c.path, err, got)
		}
	}
	if _, err := Unset([]byte(settable), "upstreams", "toy", "none"); !errors.Is(err, ErrMissing) {
		t.Errorf("a missing key: %v", err)
	}
	if _, err := SetKey([]byte(settable), "1", "none", "x"); !errors.Is(err, ErrMissing) {
		t.Errorf("a missing section: %v", err)
	}
}

// replaced returns the text with old replaced, which it has.
func replaced(t *testing.T, text, old, changed string) string {
	t.Helper()
	before, after, ok := strings.Cut(text, old)
	if !ok {
		t.Fatalf("the text has no %q", old)
	}
	return before + changed + after
}
