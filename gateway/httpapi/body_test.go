package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzBody: whatever a body is, reading it ends, and what is taken has each name once, of those that there are, to the letter.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{`{"decision":"allow"}`, `{"decision":"deny","Decision":"allow"}`, `{"decision":"a","decision":"b"}`, `[]`, `{"scope":{"a":[1]}}`, `{"reason":"\ud800"}`, "{\"reason\":\"\xff\"}", `{"decision":null}`, `{}{}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		var got Decision
		if readBody(r, &got) != nil {
			return
		}
		names := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(body), &names); err != nil || !utf8.ValidString(body) {
			t.Fatalf("%q was taken: %v", body, err)
		}
		for name := range names {
			if name != "decision" && name != "scope" && name != "reason" {
				t.Errorf("%q was taken with %q", body, name)
			}
		}
	})
}
