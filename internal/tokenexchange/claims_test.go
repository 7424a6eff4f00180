package tokenexchange_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"sallyport/internal/tokenexchange"
)

func jwt(header, payload string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

func TestDecode(t *testing.T) {
	const header = `{"alg":"ES256","typ":"oauth-id-jag+jwt"}`
	got, ok := tokenexchange.Decode(jwt(header, `{"iss":"i","sub":"s","aud":"https://a.example/","client_id":"c","resource":["r1","r2"]}`))
	if !ok || got.Type != "oauth-id-jag+jwt" || got.Issuer != "i" || got.Subject != "s" || got.ClientID != "c" {
		t.Errorf("%+v, %v", got, ok)
	}
	for audience, want := range map[string]bool{"https://a.example": true, "https://a.example/": true, "https://a.example/x": false, "": false} {
		if got.For(audience) != want {
			t.Errorf("for %q: %v", audience, !want)
		}
	}
	if !got.Of("r2") || got.Of("r3") {
		t.Errorf("the resources are %v", got.Resource)
	}
	for _, bad := range []string{"", "opaque", "a.b.c", jwt(header, `[]`), jwt(header, `{"sub":1}`), jwt(header, `{"aud":{}}`), jwt(`{}`, `{}`), jwt(header, `{}`) + ".x"} {
		if claims, ok := tokenexchange.Decode(bad); ok {
			t.Errorf("%q is read: %+v", bad, claims)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "a.b.c", jwt(`{"alg":"none"}`, `{"aud":["a",null]}`), jwt(`{"alg":"ES256"}`, `{"iss":"i","sub":"s","aud":"a"}`)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		claims, ok := tokenexchange.Decode(token)
		if !ok && (claims.Issuer != "" || claims.Subject != "" || claims.Audience != nil) {
			t.Errorf("claims of what is no JWT: %+v", claims)
		}
		if ok && strings.Count(token, ".") != 2 {
			t.Errorf("%q is read", token)
		}
	})
}
