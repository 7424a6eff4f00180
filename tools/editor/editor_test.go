package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"sallyport/internal/testutil"
)

// TestBundle: the committed bundle is what the sources and the pinned packages make.
func TestBundle(t *testing.T) {
	want, err := build(".", testutil.Editor(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("gateway/dashboard/static/editor.min.js is not what tools/editor makes: run make editor")
	}
}

// TestCompletions: what is completed at a position of a program.
func TestCompletions(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("SALLYPORT_REQUIRE") == "" {
		t.Skip(err)
	}
	if out, err := exec.CommandContext(t.Context(), node, "complete.test.js").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
