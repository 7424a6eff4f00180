package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestPatternsDoNotBacktrack: patterns of an upstream's schema that take other engines for ever are checked at once (C14).
func TestPatternsDoNotBacktrack(t *testing.T) {
	patterns := map[string]string{"plus": `^(a+)+$`, "or": `^(a|aa)+$`, "star": `^(a*)*b$`, "mail": `^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+$`, "repeat": `^(((a{1,30}){1,30})){1,30}$`}
	s := newSite(t, func(s *site) {
		for name, pattern := range patterns {
			quoted, _ := json.Marshal(pattern)
			s.tool(name, "", `"properties":{"x":{"type":"string","pattern":`+string(quoted)+`}}`, echo)
		}
	})
	g := open(t, settings(map[string]*site{"up": s}), nil)
	begin := time.Now()
	for name := range patterns {
		_, _ = call(t, g, "up."+name, `{"x":"`+strings.Repeat("a", 50_000)+`!"}`) // refused or not: an upstream checks too
	}
	if took := time.Since(begin); took > 20*time.Second { // some milliseconds, on a machine with nothing else to do
		t.Errorf("it took %v", took)
	}
	if result, err := call(t, g, "up.plus", `{"x":"aaa"}`); err != nil || result.IsError {
		t.Errorf("what matches: %+v, %v", result, err)
	}
}
