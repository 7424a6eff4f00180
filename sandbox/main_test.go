package sandbox_test

import (
	"fmt"
	"os"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
)

func TestMain(m *testing.M) {
	remove, err := shareSnapshots()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := tlstest.M{Tests: m}.Run()
	remove()
	os.Exit(code)
}

// shareSnapshots makes a directory where the hosts of all tests share snapshots, unless there is one that this user can
// read: the making of a snapshot costs two starts of an interpreter.
func shareSnapshots() (remove func(), err error) {
	if _, err := os.ReadDir(testutil.Snapshots()); err == nil {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "snapshots-")
	if err != nil {
		return nil, err
	}
	return func() { _ = os.RemoveAll(dir) }, os.Setenv("SALLYPORT_TEST_SNAPSHOTS", dir)
}
