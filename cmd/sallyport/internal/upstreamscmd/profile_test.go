package upstreamscmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/config"
)

// TestUnion checks that hosts are added to those of the settings, and that a header is neither written nor lost.
func TestUnion(t *testing.T) {
	t.Parallel()
	plain := []config.IsolationHost{{Name: "b.test:443"}}
	secret := append(plain, config.IsolationHost{Name: "c.test", Header: config.Secrets{"X-Key": "S3cret-value"}})
	for name, test := range map[string]struct {
		now  []config.IsolationHost
		more []string
		want []string
		says string
	}{
		"none":             {nil, nil, nil, ""},
		"more":             {plain, []string{"a.test", "b.test"}, []string{"a.test", "b.test:443"}, ""},
		"known, a header":  {secret, []string{"b.test", "c.test"}, nil, ""},
		"more, and header": {secret, []string{"a.test"}, nil, "a host in the settings has a header"},
	} {
		var more []config.IsolationHost
		for _, host := range test.more {
			more = append(more, config.IsolationHost{Name: host})
		}
		got, err := union(test.now, more)
		if err != nil && (test.says == "" || !strings.Contains(err.Error(), test.says)) || err == nil && test.says != "" {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
		if diff := cmp.Diff(test.want, config.HostNames(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
