// Package mountrule checks the paths at which an isolated program sees files of this machine.
package mountrule

import (
	"fmt"
	"path/filepath"
	"regexp"
)

// reserved matches paths that the sandbox of an upstream needs for other files.
var reserved = regexp.MustCompile(`^/((proc|sys|dev|etc|bin|sbin|lib|lib32|lib64|libx32|node_modules|servers|workspace|opt/packages|opt/interpreter|opt/sallyport|usr/(bin|lib|lib32|lib64|libx32|share))(/.*)?|usr|opt|tmp|home|run|run/sallyport|)$`)

// Problem says why a path cannot be mounted, "" if it can.
func Problem(path string) string {
	switch {
	case !filepath.IsAbs(path) || filepath.Clean(path) != path:
		return "the path of a mount must be absolute"
	case reserved.MatchString(path):
		return fmt.Sprintf("%.200q cannot be mounted: the sandbox has other files there; mount a folder below /home, /opt, /srv or /var", path)
	}
	return ""
}
