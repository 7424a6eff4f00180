package main

import (
	"os"

	"sallyport/internal/testutil"
)

// withSharedSnapshots runs a command that finds the snapshots of other tests in its cache, and that shares those of earlier
// commands with other tests.
func withSharedSnapshots(command func()) func() {
	return func() {
		testutil.ShareSnapshots(os.Getenv("XDG_CACHE_HOME"))
		command()
	}
}
