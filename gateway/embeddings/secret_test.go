package embeddings_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sallyport/gateway/embeddings"
	"sallyport/internal/testutil/tlstest"
)

// TestKeysOfTheAddressAreNotShown: an endpoint may repeat the key that its address has.
func TestKeysOfTheAddressAreNotShown(t *testing.T) {
	s := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"bad key %s of %s, password %s, at %s"}}`, r.URL.Query().Get("key"), user, password, r.URL.RawQuery)
	}))
	defer s.Close()
	url := strings.Replace(s.URL, "http://", "http://ada:swordfish@", 1) + "/v1?version=2026&key=s3cr%2Fet-key"
	_, _, err := embeddings.Check(t.Context(), embeddings.Settings{URL: url, Model: "m"})
	if err == nil || strings.Contains(err.Error(), "et-key") || strings.Contains(err.Error(), "swordfish") || !strings.Contains(err.Error(), "bad key [secret]") {
		t.Errorf("got %v", err)
	}
}
