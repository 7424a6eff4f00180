package deps

import (
	"encoding/json"
	"testing"
)

// TestOrderHasNoNulls: the driver goes through the lists of an order, whatever there is in them.
func TestOrderHasNoNulls(t *testing.T) {
	t.Parallel()
	line, err := driverRequest{}.encode()
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(line, &fields); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		if value == nil && name != "npm" { // the driver asks whether there is one
			t.Errorf("%s is null", name)
		}
	}
}
