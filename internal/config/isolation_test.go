package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestHeaderSecrets checks that the header of a host is known as a secret and not printed, and that a variable without a value is a
// problem of its upstream.
func TestHeaderSecrets(t *testing.T) {
	t.Parallel()
	const secret = "S3cret-of-the-edge"
	text := []byte(`upstreams: {a: {command: server, isolate: {hosts: [plain.example.com, {name: api.example.com, header: {Authorization: "Bearer ${TOKEN}"}}]}}}`)
	c, err := Parse("upstreams.yaml", text, func(name string) (string, bool) { return secret, name == "TOKEN" })
	if err != nil {
		t.Fatal(err)
	}
	if got := c.SecretValues()["a"]; !slices.Contains(got, secret) || !slices.Contains(got, "Bearer "+secret) {
		t.Errorf("the secrets are %q", got)
	}
	set := c.Upstreams[0].Isolate
	if got := set.Hosts[1].Header["Authorization"]; got != "Bearer "+secret || !set.PutsHeaders() {
		t.Errorf("the header is %q", got)
	}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		if shown := fmt.Sprintf(verb, *set); strings.Contains(shown, secret) {
			t.Errorf("%s shows %s", verb, shown)
		}
	}
	c, err = Parse("upstreams.yaml", text, nil)
	if err != nil || !strings.Contains(c.Upstreams[0].Problem, "TOKEN") {
		t.Errorf("without a value: %v, %+v", err, c)
	}
}
