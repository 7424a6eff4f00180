package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRecognizer: defaults, and what a reference without a value leaves.
func TestRecognizer(t *testing.T) {
	t.Parallel()
	c, err := Parse("/etc/s/f", []byte(`{upstreams: {}, privacy: {recognizer: {url: "https://presidio.example", headers: {A: "${SECRET}"}, ca: ca.pem}}}`), env)
	if err != nil {
		t.Fatal(err)
	}
	want := &Recognizer{
		URL: "https://presidio.example", Headers: Secrets{"A": secret}, CA: "/etc/s/ca.pem", Language: "en", Threshold: 0.5,
		Entities: map[string]string{"PERSON": "name", "LOCATION": "address"}, Batch: true, Timeout: 10 * time.Second, MaxText: MiB, OnFailure: FailureRefuse,
	}
	if diff := cmp.Diff(want, c.Privacy.Recognizer); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !slices.Contains(c.SecretValues()[""], secret) {
		t.Error("the header is no known secret")
	}
	for _, local := range []string{"http://127.0.0.1:3000", "http://[::1]:3000/analyze", "http://localhost:3000", "http://presidio:3000, insecure: true"} {
		if _, err := Parse("f", []byte(`{upstreams: {}, privacy: {recognizer: {url: `+strings.ReplaceAll(local, "http://[::1]:3000/analyze", `"http://[::1]:3000/analyze"`)+`}}}`), env); err != nil {
			t.Errorf("%s: %v", local, err)
		}
	}
	if c, err := Parse("f", []byte(`{upstreams: {}, privacy: {recognizer: local}}`), env); err != nil || !c.Privacy.Recognizer.Local || c.Privacy.Recognizer.OnFailure != FailureRefuse {
		t.Errorf("got %+v, %v", c, err)
	}
	c, err = Parse("f", []byte(`{upstreams: {}, privacy: {recognizer: {url: "${UNSET}", headers: {A: "${UNSET}"}}}}`), env)
	if err != nil || c.Privacy.Recognizer.Problem != "the variable UNSET is not set" {
		t.Errorf("got %+v, %v", c, err)
	}
}
