package build_test

import (
	"strings"
	"testing"

	"sallyport/internal/build"
)

func TestRunscFix(t *testing.T) {
	for _, test := range []struct{ version, program, want string }{
		{"1.2.3", "/usr/lib/sallyport/sallyport", "install the deb or rpm package of sallyport again"},
		{"1.2.3", "/usr/local/lib/node_modules/@sallyport/linux-x64/bin/sallyport", "install the npm packages of sallyport again"},
		{"1.2.3", "/home/ann/sallyport-1.2.3-linux-amd64/bin/sallyport", "copy it from the archive of this release to /home/ann/sallyport-1.2.3-linux-amd64/bin"},
		{"dev", "/home/ann/sallyport/.cache/bin/sallyport", "run `make runsc`"},
		{"dev", "/usr/local/bin/sallyport", "run `make runsc` and `sudo make install` in the checkout"},
		{"1.2.3", "", "in the checkout"},
	} {
		if got := (build.Info{Version: test.version}).RunscFix(test.program); !strings.Contains(got, test.want) {
			t.Errorf("%s at %q: %s, want %s", test.version, test.program, got, test.want)
		}
	}
}
