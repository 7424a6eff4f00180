package main

import (
	"bytes"
	"os"
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
