package policy

import (
	"context"
	"fmt"

	"sallyport/internal/sanitize"
)

// Unreachable returns a line for each rule that can never decide, with the reason. p must be compiled from set.
func (set Settings) Unreachable(ctx context.Context, p *Policy) (lines []string) {
	name := func(i int) string {
		if set.Rules[i].Name != "" {
			return fmt.Sprintf("rule %q", sanitize.Line(set.Rules[i].Name, 100))
		}
		return fmt.Sprintf("rule %d", i+1)
	}
	for _, s := range p.Shadows(ctx) {
		why := "its condition is never true"
		if s.By != s.Rule {
			why = name(s.By) + " above it decides first"
		}
		lines = append(lines, fmt.Sprintf("%s can never decide: %s", name(s.Rule), why))
	}
	return lines
}
