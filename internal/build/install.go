package build

import (
	"path/filepath"
	"strings"
)

// RunscFix says how to get the runsc that belongs to a program, by the path where that is installed, without symbolic
// links: "" if the path is not known.
func (i Info) RunscFix(program string) string {
	dir := filepath.ToSlash(filepath.Dir(program))
	switch {
	case strings.Contains(dir, "/node_modules/"):
		return "install the npm packages of sallyport again, which have it"
	case dir == "/usr/lib/sallyport":
		return "install the deb or rpm package of sallyport again, which has it"
	case i.Version != "dev" && program != "":
		return "copy it from the archive of this release to " + dir
	case strings.HasSuffix(dir, "/.cache/bin"):
		return "run `make runsc`"
	}
	return "run `make runsc` and `sudo make install` in the checkout of sallyport"
}
