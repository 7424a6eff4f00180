package build_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"sallyport/internal/build"
)

func TestRead(t *testing.T) {
	got := build.Read()
	if got.Version == "" || got.Go != runtime.Version() || got.Platform != runtime.GOOS+"/"+runtime.GOARCH || got.RunscPin != build.Runsc {
		t.Errorf("Read() = %+v", got)
	}
}

// The stamped pin is the one that the Makefile builds.
func TestRunscPin(t *testing.T) {
	mod, err := os.ReadFile("../../tools/runsc/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "gvisor.dev/gvisor " + build.Runsc; !strings.Contains(string(mod), want) {
		t.Errorf("tools/runsc/go.mod lacks %q", want)
	}
}
