package yamledit_test

import (
	"errors"
	"testing"

	"sallyport/internal/yamledit"
)

func TestRename(t *testing.T) {
	path := []string{"a", "x"}
	for in, want := range map[string]string{
		"# c\na: # d\n  x: 1 # e\n  y: 2":  "# c\na: # d\n  z: 1 # e\n  y: 2",
		"a: {x: 1, y: 2} # x\r\nb: 1\r\n":  "a: {z: 1, y: 2} # x\r\nb: 1\r\n",
		"a: {\"x\": 1}\n":                  "a: {z: 1}\n",
		"\ufeffa:\n  # x: 0\n  'x' : {}\n": "\ufeffa:\n  # x: 0\n  z : {}\n",
	} {
		if got, err := yamledit.Rename([]byte(in), path, "z"); err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
	for in, want := range map[string]error{
		"a: {y: 1}\n":             yamledit.ErrMissing,
		"a: 1\n":                  yamledit.ErrMissing,
		"":                        yamledit.ErrMissing,
		"a: {x: 1, z: 2}\n":       yamledit.ErrUnsafe,
		"a: {\"\\x78\": 1}\n":     yamledit.ErrUnsafe,
		"a: {? &k x : 1, *k : 2}": yamledit.ErrUnsafe,
	} {
		if got, err := yamledit.Rename([]byte(in), path, "z"); !errors.Is(err, want) {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
}

func TestSetAndUnset(t *testing.T) {
	path := []string{"a", "x"}
	for in, want := range map[string][2]string{
		"a:\n  # c\n  x: old # d\n  y: 2\n": {"a:\n  # c\n  x: new # d\n  y: 2\n", "a:\n  # c\n  y: 2\n"},
		"a: {x: old, y: 2}\n":               {"a: {x: new, y: 2}\n", "a: {y: 2}\n"},
		"a: {y: [1, 2], x: \"old\" }\n":     {"a: {y: [1, 2], x: new }\n", "a: {y: [1, 2] }\n"},
	} {
		if got, err := yamledit.SetKey([]byte(in), "new", path...); err != nil || string(got) != want[0] {
			t.Errorf("set in %q: got %q, %v", in, got, err)
		}
		if got, err := yamledit.Unset([]byte(in), path...); err != nil || string(got) != want[1] {
			t.Errorf("unset in %q: got %q, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		"b: 1\na: {x: 1}\n": "b: 1\n", "b: 1\na:\n  x: 1\n": "b: 1\n", "a:\n  x:\n    y: 1\n  z: 1\n": "a:\n  z: 1\n", "a:\n  x: |\n    t\n  z: 1\n": "a:\n  z: 1\n",
	} {
		if got, err := yamledit.Unset([]byte(in), path...); err != nil || string(got) != want {
			t.Errorf("unset in %q: got %q, %v", in, got, err)
		}
	}
}
