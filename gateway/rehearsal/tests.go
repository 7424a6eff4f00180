package rehearsal

import (
	"context"

	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// TestResult is the result of a test of the policy.
type TestResult struct {
	policy.Test
	// Problem says what is wrong with the decision, "" if it is as expected.
	Problem string
}

// Tests runs the tests of the policy in settings.
func Tests(ctx context.Context, cfg *config.Config) (all []TestResult, err error) {
	p, err := policy.New(cfg.Policy, nil)
	if err != nil {
		return nil, err
	}
	for _, t := range cfg.Policy.Tests {
		d, err := p.Run(ctx, t, labelsFor(cfg, t.Call))
		if err != nil {
			return nil, err
		}
		all = append(all, TestResult{t, t.Failure(d)})
	}
	return all, nil
}

// labelsFor returns the labels that the settings give a tool.
func labelsFor(cfg *config.Config, call string) []string {
	id, err := tool.ParseID(call)
	if err != nil {
		return nil
	}
	for _, up := range cfg.Labeled() {
		if up.ID == tool.Identifier(id.Upstream) {
			return up.LabelsOf(id.Name)
		}
	}
	return nil
}
