package endpoint_test

import (
	"net/http"
	"strings"
	"testing"

	"sallyport/bench/endpoint"
	"sallyport/bench/tokencount"
	"sallyport/internal/testutil/tlstest"
)

func TestAddresses(t *testing.T) {
	var asked string
	s := tlstest.NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.String() }))
	defer s.Close()
	for _, test := range []struct {
		path string
		api  endpoint.API
		want string
	}{
		{"", "", "/v1/chat/completions"},
		{"/", "", "/v1/chat/completions"},
		{"/v1", "", "/v1/chat/completions"},
		{"/v1/", "", "/v1/chat/completions"},
		{"/v1/chat/completions", "", "/v1/chat/completions"},
		{"/chat/completions/", "", "/chat/completions"},
		{"/v1beta/openai", "", "/v1beta/openai/chat/completions"},
		{"/openai/deployments/x/chat/completions?api-version=1", "", "/openai/deployments/x/chat/completions?api-version=1"},
		{"/anthropic/v1/chat/completions", "", "/anthropic/v1/chat/completions"},
		{"/anthropic", "", "/anthropic/v1/messages"},
		{"/v1/messages", "", "/v1/messages"},
		{"", endpoint.Anthropic, "/v1/messages"},
		{"/v1", endpoint.Anthropic, "/v1/messages"},
		{"/anthropic", endpoint.OpenAI, "/anthropic/chat/completions"},
	} {
		e := open(t, endpoint.Settings{URL: s.URL + test.path, API: test.api, Model: "m"})
		if _, err := e.Begin().Next(t.Context(), &tokencount.Transcript{Prompt: "hello"}); err == nil || asked != test.want {
			t.Errorf("%s as %q: asked %s, %v", test.path, test.api, asked, err)
		}
	}
	for _, address := range []string{"localhost:11434", "", "ftp://host/v1", "http://", "http://user:secret@host/v1"} {
		if _, err := endpoint.Open(t.Context(), endpoint.Settings{URL: address, Model: "m"}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestPrivate(t *testing.T) {
	for address, want := range map[string]bool{
		"https://host.test": true, "http://localhost:1/v1": true, "http://127.0.0.1": true, "http://[::1]:80": true,
		"http://host.test": false, "http://10.0.0.1": false, "http://localhost.test": false, "::": false,
	} {
		if endpoint.Private(address) != want {
			t.Errorf("%s: %v", address, !want)
		}
	}
}
