//go:build linux

package remote_test

import (
	"testing"

	"sallyport/sandbox/sandboxtest"
)

// TestConformance runs what depends on the way between a program and its gateway. All of the suite passes, too,
// and takes minutes: what a sandbox does is tested with the host itself.
func TestConformance(t *testing.T) {
	sandboxtest.Some(t, client(t),
		"things of every kind are emitted", "lone surrogates", "arguments that JSON has no type for", "a tool's error has the line of its call",
		"a tool's hint is in the fault", "results that are hard to read hurt no other call", "a megabyte both ways in node",
		"progress is heard where it was asked for", "C11 no more calls than allowed", "a call that never ends is cancelled with its program",
		"A14 killing itself", "what was printed before the limit is kept", "endless loop in python")
}
