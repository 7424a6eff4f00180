package doctorcmd

import (
	"context"

	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/sandbox"
)

// checkPolicy reports rules without effect.
func checkPolicy(ctx context.Context, cfg *config.Config) (found []finding) {
	p, err := policy.New(cfg.Policy, nil)
	if err != nil { // reading the settings has checked it
		return nil
	}
	for _, dead := range cfg.Policy.Unreachable(ctx, p) {
		found = append(found, finding{Check: sandbox.Check{Name: "policy", OK: true, Warn: true, Detail: dead, Fix: "move it up, or remove it"}})
	}
	return found
}
