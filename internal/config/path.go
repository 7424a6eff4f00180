package config

import (
	"fmt"

	"sallyport/internal/yamlstrict"
)

type (
	path   = yamlstrict.Path
	reader = yamlstrict.Reader
	key    = yamlstrict.Key
)

// named are the sections with user-defined member names, and what one of them is called.
var named = map[string]string{"upstreams": "upstream", "environments": "environment", "workspaces": "workspace"}

// label names the value at p to someone who sees where it stands.
func label(p path) string {
	if len(p) < 2 || named[p[0]] == "" {
		return p.Label()
	}
	if len(p) == 2 {
		return fmt.Sprintf("%s %.40q", named[p[0]], p[1])
	}
	return fmt.Sprintf("%.80q", p[2:].String())
}

// owner names the upstream, environment or section that p is in.
func owner(p path) string {
	if len(p) > 1 && named[p[0]] != "" {
		return fmt.Sprintf("%s %.40q", named[p[0]], p[1])
	}
	return p[0]
}
