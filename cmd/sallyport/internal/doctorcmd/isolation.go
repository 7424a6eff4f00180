package doctorcmd

import (
	"fmt"
	"strings"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/config"
	"sallyport/sandbox"
)

// maxNamed bounds the upstreams that a finding names.
const maxNamed = 5

// checkIsolation says which upstreams could run in a sandbox; there is none where this machine has no sandboxes.
func checkIsolation(cfg *config.Config) (found []finding) {
	var names []string
	for _, up := range cfg.Upstreams {
		if up.Command != "" && up.Isolate == nil && !up.Disabled {
			names = append(names, up.Name)
		}
	}
	if len(names) == 0 || cfg.Sandbox.Remote != "" || sandbox.Platform() != nil {
		return nil
	}
	shown := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if len(names) > maxNamed {
		shown += ", ..."
	}
	detail := fmt.Sprintf("%s with your rights (%s); isolate: true in its settings gives one a sandbox", cli.Count(len(names), "server"), shown)
	return []finding{{Check: sandbox.Check{Name: "isolation", OK: true, Detail: detail}}}
}
