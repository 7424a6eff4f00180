package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestAliasBombs: laughs of nine levels, and a hundred thousand anchors, are told of and not followed.
func TestAliasBombs(t *testing.T) {
	laughs := "a0: &a0 [x, x]\n"
	for i := range 9 {
		laughs += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	inTime(t, "laughs", laughs+"upstreams: {x: {command: *a9}}\n")
	inTime(t, "laughs in a list", "upstreams:\n  x:\n    command: a\n    args:\n    - &a [x]\n    - &b [*a, *a]\n    - &c [*b, *b]\n    - *c\n")
	inTime(t, "itself", "upstreams: &a {x: *a}\n")
	inTime(t, "anchors", "upstreams:\n  x:\n    command: a\n    args:\n"+numberedLines(20_000, "    - &n%d x\n"))
	inTime(t, "merges", "upstreams:\n  x: &x {command: a}\n"+numberedLines(5000, "  y%d: {<<: *x}\n"))
}
