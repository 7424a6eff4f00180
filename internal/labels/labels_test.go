package labels_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/labels"
)

func TestParse(t *testing.T) {
	has, err := labels.Parse([]string{"region=eu", "gpu=A100.x"})
	if err != nil || has["region"] != "eu" || has["gpu"] != "A100.x" {
		t.Errorf("%v, %v", has, err)
	}
	var many []string
	for i := range 17 {
		many = append(many, fmt.Sprintf("k%d=v", i))
	}
	for _, wrong := range [][]string{{"region"}, {"Region=eu"}, {"region="}, {"=eu"}, {"region=e u"}, {"region=\x1b"}, {strings.Repeat("k", 33) + "=v"}, many} {
		if _, err := labels.Parse(wrong); err == nil || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestMissing(t *testing.T) {
	has := map[string]string{"region": "eu", "gpu": "true"}
	for want, wanted := range map[string][]string{"": {"gpu=true", "region=eu"}, "gpu=false zone=": {"gpu=false", "region=eu", "zone="}} {
		if got := labels.Missing(wanted, has); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q", wanted, got)
		}
	}
	if got := labels.Missing(nil, nil); got != nil {
		t.Errorf("%q", got)
	}
}
