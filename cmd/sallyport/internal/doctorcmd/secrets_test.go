package doctorcmd

import (
	"testing"

	"sallyport/internal/config"
)

// TestCheckSecrets: a secret that can be read is told without its value.
func TestCheckSecrets(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{Path: "upstreams.yaml", ManagedSecrets: []config.ManagedSecret{{Name: "vault:secret/data/a#k", Line: 3, Column: 9}, {Name: "aws:b", Line: 4, Column: 9, Problem: "no", Fix: "allow it"}}}
	found := checkSecrets(cfg)
	if got, want := found[0].String(), "ok    secret ${vault:secret/data/a#k}: upstreams.yaml:3:9: it can be read"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := found[1].String(), "FAIL  secret ${aws:b}: upstreams.yaml:4:9: no\n      fix: allow it"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
