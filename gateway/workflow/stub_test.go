package workflow

import "testing"

func TestAt(t *testing.T) {
	if run, path := StepFromContext(t.Context()); run != "" || path != "" {
		t.Errorf("outside of a run: %q, %q", run, path)
	}
	if run, path := StepFromContext(atStep(t.Context(), "r-1", "each[2].fetch")); run != "r-1" || path != "each[2].fetch" {
		t.Errorf("within: %q, %q", run, path)
	}
}
