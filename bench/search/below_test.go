package main

import (
	"strings"
	"testing"
)

// TestNoSetFallsBelowBleve holds our search to bleve's default, on every metric
// of every set but BFCL, which has 700 queries that take too long here: index's own test has
// a floor for it.
func TestNoSetFallsBelowBleve(t *testing.T) {
	for _, name := range []string{"livemcp", "mcpproxygold", "catalog"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, err := runSet(t.Context(), read(t, name), []string{ours, plain}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range below(rows, ours, plain) {
				if _, rest, _ := strings.Cut(line, ", "); strings.HasPrefix(rest, "all, ") {
					t.Error(line)
				} else { // a half of a small set is a matter of two or three queries
					t.Log(line)
				}
			}
		})
	}
}
