package doctorcmd

import (
	"fmt"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/workflow/library"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/config"
	"sallyport/sandbox"
)

// checkWorkflows checks the workflow definitions, if there are any.
func checkWorkflows(cfg *config.Config) []finding {
	defs, faults := spec.LoadDir(cfg.Workflows.Path)
	if len(defs)+len(faults) == 0 && cfg.Workflows.Problem == "" {
		return nil
	}
	check := sandbox.Check{Name: "workflows", OK: true, Detail: fmt.Sprintf("%s in %s", cli.Count(len(defs), "workflow"), cfg.Workflows.Path)}
	switch {
	case len(faults) > 0:
		check.Warn, check.Detail = true, check.Detail+"; "+library.FirstLine(faults[0])
		check.Fix = "sallyport workflow lint shows all that is wrong; the others run"
	case cfg.Workflows.Problem != "":
		check.Warn, check.Detail = true, check.Detail+"; secrets: "+cfg.Workflows.Problem
		check.Fix = "set it, or webhooks that are signed with it are refused"
	}
	return []finding{{Check: check}}
}
