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

// namedSections maps sections with user-defined member names to the noun for a member.
var namedSections = map[string]string{"upstreams": "upstream", "environments": "environment", "workspaces": "workspace"}

// label returns the name of the value at p for messages that also have the line.
func label(p path) string {
	if len(p) < 2 || namedSections[p[0]] == "" {
		return p.Label()
	}
	if len(p) == 2 {
		return fmt.Sprintf("%s %.40q", namedSections[p[0]], p[1])
	}
	return fmt.Sprintf("%.80q", p[2:].String())
}

// owner returns the name of the upstream, environment or section of p.
func owner(p path) string {
	if len(p) > 1 && namedSections[p[0]] != "" {
		return fmt.Sprintf("%s %.40q", namedSections[p[0]], p[1])
	}
	return p[0]
}
