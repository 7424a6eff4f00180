package desktop_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"sallyport/internal/desktop"
	"sallyport/internal/testutil"
)

// TestNotify: a text cannot become an option or markup, and a missing program is an error.
func TestNotify(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("notify-send is of Linux")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	testutil.WriteProgram(t, filepath.Join(dir, "notify-send"), "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$0.args\"\n")
	if err := desktop.Notify(t.Context(), "Sallyport", "--help <b>&\nline"); err != nil {
		t.Fatal(err)
	}
	want := "--app-name=Sallyport\n--\nSallyport\n--help &lt;b&gt;&amp;\nline\n"
	if got, err := os.ReadFile(filepath.Join(dir, "notify-send.args")); err != nil || string(got) != want {
		t.Errorf("%v, the arguments are %q", err, got)
	}
	testutil.WriteProgram(t, filepath.Join(dir, "notify-send"), "#!/bin/sh\necho no display >&2; exit 3\n")
	if err := desktop.Notify(t.Context(), "Sallyport", "x"); err == nil || errors.Is(err, desktop.ErrUnsupported) {
		t.Errorf("a failure is %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := desktop.Notify(t.Context(), "Sallyport", "x"); !errors.Is(err, desktop.ErrUnsupported) {
		t.Errorf("without the program it is %v", err)
	}
}
