package secretstore

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestSignature has requests of the test suite that AWS publishes for Signature Version 4: get-vanilla and post-vanilla.
func TestSignature(t *testing.T) {
	t.Parallel()
	u, err := url.Parse("https://example.amazonaws.com/")
	if err != nil {
		t.Fatal(err)
	}
	keys := awsKeys{id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	for method, want := range map[string]string{
		http.MethodGet:  "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		http.MethodPost: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
	} {
		header := http.Header{}
		sign(header, method, u, nil, keys, "us-east-1", "service", time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
		if got := header.Get("Authorization"); !strings.HasSuffix(got, "SignedHeaders=host;x-amz-date, Signature="+want) {
			t.Errorf("%s: %s", method, got)
		}
	}
}
