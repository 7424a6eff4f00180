package imageref_test

import (
	"strings"
	"testing"

	"sallyport/internal/imageref"
)

func TestForms(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for text, name := range map[string]string{
		"mcp/time": "mcp/time", "busybox": "busybox", "busybox:1.36" + digest: "busybox", "ghcr.io/a/b-c/d_e:v1" + digest: "ghcr.io/a/b-c/d_e",
		"localhost:5000/x": "localhost:5000/x", "localhost/x:1": "localhost/x", "registry:5000/x:1": "registry:5000/x",
	} {
		if !imageref.Valid(text) || imageref.Name(text) != name || imageref.Pinned(text) != strings.Contains(text, "@") {
			t.Errorf("%s: %v, %s, %v", text, imageref.Valid(text), imageref.Name(text), imageref.Pinned(text))
		}
	}
	for _, text := range []string{
		"", "A/b", "-x", "x y", "https://ghcr.io/a/b", "a//b", "../x", "a@sha256:00", "a@sha512:" + strings.Repeat("0", 128), "a:", "a/b:t/c", "$x", strings.Repeat("a", 501), "x:" + strings.Repeat("t", 129),
		"x\n", "ghcr.io/a/b --privileged",
	} {
		if imageref.Valid(text) {
			t.Errorf("%q is a reference", text)
		}
	}
}
