package workflow

import "testing"

func TestAt(t *testing.T) {
	if run, path := At(t.Context()); run != "" || path != "" {
		t.Errorf("outside of a run: %q, %q", run, path)
	}
	if run, path := At(atStep(t.Context(), "r-1", "each[2].fetch")); run != "r-1" || path != "each[2].fetch" {
		t.Errorf("within: %q, %q", run, path)
	}
}
