package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/secretstore"
)

// TestManagedReferences: a secret of a manager is a value like others and is hidden like others; one that cannot be read
// stops only its upstream, which says where it stands and what to do.
func TestManagedReferences(t *testing.T) {
	c, err := sources.Parse("/etc/s/upstreams.yaml", []byte(`upstreams:
  a: {url: "https://example.com", headers: {Authorization: "Bearer ${vault:secret/data/github#token}"}}
  b: {command: x, env: {KEY: "${aws:denied}"}}
  c: {command: x, disabled: true, env: {KEY: "${aws:denied}"}}
secret_managers: {refresh: 1m}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Upstreams[0].Headers["Authorization"]; got != "Bearer "+secret || !slices.Contains(c.SecretValues()["a"], secret) {
		t.Errorf("%q, secrets %d", got, len(c.SecretValues()["a"]))
	}
	const why = "${aws:denied}: AWS Secrets Manager answers AccessDeniedException"
	if want := "upstreams.yaml:3:31: " + why + "; allow it"; c.Upstreams[1].Problem != want {
		t.Errorf("problem %q, want %q", c.Upstreams[1].Problem, want)
	}
	if got := c.SecretValues()["b"]; len(got) > 0 {
		t.Errorf("messages cannot name the reference, as it is hidden: %q", got)
	}
	want := []ManagedSecret{{Name: "vault:secret/data/github#token", Line: 2, Column: 68}, {Name: "aws:denied", Line: 3, Column: 31, Problem: why, Fix: "allow it"}}
	if diff := cmp.Diff(want, c.ManagedSecrets); diff != "" {
		t.Error(diff)
	}
}

// TestManagersAreSetFirst: the section may follow what refers to its secrets, and its own values come from elsewhere.
func TestManagersAreSetFirst(t *testing.T) {
	r := &recordedManagers{}
	s := sources
	s.Managers = r
	_, err := s.Parse("upstreams.yaml", []byte("upstreams: {a: {command: x, env: {K: '${op:a/b/c}'}}}\nsecret_managers: {onepassword: {url: 'https://connect', token: '${SECRET}'}}\n"))
	if err != nil || r.token != secret || r.early {
		t.Errorf("token %q, read early: %v, error %v", r.token, r.early, err)
	}
	_, err = s.Parse("upstreams.yaml", []byte("upstreams: {}\nsecret_managers: {onepassword: {token: '${op:a/b/c}'}}\n"))
	if err == nil || !strings.Contains(err.Error(), "upstreams.yaml:2:41: the settings of secret managers cannot be in a secret manager") {
		t.Error(err)
	}
}

// recordedManagers remembers the token that it was given before something was read.
type recordedManagers struct {
	token string
	early bool
}

func (r *recordedManagers) Use(m secretstore.Managers) { r.token = string(m.OnePassword.Token) }

func (r *recordedManagers) Read(string) (string, error) {
	r.early = r.early || r.token == ""
	return secret, nil
}
