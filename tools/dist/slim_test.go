package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPatches: each patch applies to the version of its library that is in go.mod, and leaves a file of Go.
func TestPatches(t *testing.T) {
	t.Parallel()
	for _, p := range patches() {
		from, to := "", t.TempDir()
		var err error
		if from, err = p.source(t.Context(), filepath.Join("..", "..")); err == nil {
			err = p.write(from, to)
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for _, f := range p.files {
			if _, err := parser.ParseFile(token.NewFileSet(), filepath.Join(to, f.name), nil, parser.AllErrors); err != nil {
				t.Error(err)
			}
			before, after := read(t, filepath.Join(from, f.name)), read(t, filepath.Join(to, f.name))
			if before == after || strings.Contains(after, "…") {
				t.Errorf("%s of %q was not changed", f.name, p.module)
			}
		}
	}
}

// TestApply: a text that is not there, is there twice, or has no end, is an error.
func TestApply(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, text, want string }{
		{"b", "abc", "aXc"},
		{"b…d", "abcde", "aXe"},
		{"b…d", "abcdbd", ""},
		{"b…d", "abc", ""},
		{"b", "ac", ""},
		{"b", "abcb", ""},
	} {
		got, err := filePatch{name: "file", changes: [][2]string{{c.from, "X"}}}.apply(c.text)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q in %q: %q, %v", c.from, c.text, got, err)
		}
	}
	if got, err := (filePatch{name: "file"}).apply("// A comment.\npackage v1\n\nvar x = 1\n"); got != "package v1\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
