package doctorcmd

import (
	"context"
	"maps"
	"slices"
	"strings"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/sandbox"
)

func checkEnvironments(ctx context.Context, g *gateway.Gateway, cfg *config.Config, note func(finding) error) error {
	for _, name := range slices.Sorted(maps.Keys(cfg.Environments)) {
		if err := note(checkEnvironment(ctx, g, cfg, name)); err != nil {
			return err
		}
	}
	return nil
}

// checkEnvironment prepares an environment, as its first program would, and describes its content.
func checkEnvironment(ctx context.Context, g *gateway.Gateway, cfg *config.Config, name string) finding {
	ctx, cancel := context.WithTimeout(ctx, cli.ConnectTimeout)
	defer cancel()
	check := sandbox.Check{Name: "environment " + name}
	inside, err := g.Environments.CheckEnvironment(ctx, name)
	if err != nil {
		check.Detail = cli.Clean(err.Error())
		check.Fix = "correct environments." + name + " in upstreams.yaml, see docs/how-to/environments.md; programs in other environments run"
		return finding{Check: check}
	}
	check.OK, check.Detail = true, inside
	if of := environmentSummary(cfg.Environments[name]); of != "" {
		check.Detail += " (" + of + ")"
	}
	return finding{Check: check}
}

// environmentSummary describes in a few words what an environment consists of.
func environmentSummary(e config.Environment) string {
	var parts []string
	for _, part := range []struct{ what, value string }{{"image", e.Image}, {"root", e.Root}, {"base", e.Python.Base}} {
		if part.value != "" {
			parts = append(parts, part.what+" "+cli.Clean(part.value))
		}
	}
	if n := len(e.Python.Requirements) + len(e.TypeScript.Packages); n > 0 {
		parts = append(parts, cli.Count(n, "package")+" required")
	}
	if e.Install {
		parts = append(parts, "models may install more")
	}
	return strings.Join(parts, ", ")
}
