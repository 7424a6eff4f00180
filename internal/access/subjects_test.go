package access_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/internal/access"
)

const sso = "https://sso.example.com"

func subject(token, who string, life time.Duration) access.Subject {
	return access.Subject{Token: token, Kind: "access_token", Issuer: sso, ID: who, Expires: time.Now().Add(life)}
}

// TestSubjects: a principal's token is kept while it is valid and of use, and the one that lasts longer counts.
func TestSubjects(t *testing.T) {
	s := access.NewSubjects()
	s.Put(t.Context(), "oauth:ada", subject("early", "ada", time.Hour))
	if _, ok := s.Get("oauth:ada", sso, "access_token"); ok {
		t.Error("a token is kept before anybody needs one")
	}
	s.Use(func(issuer string) bool { return issuer == sso }, func(context.Context, string) { t.Error("something was deleted") })
	foreign := subject("foreign", "ada", time.Hour)
	foreign.Issuer = "https://other.example.com"
	s.Put(t.Context(), "oauth:ada", foreign, subject("expired", "ada", -time.Second), subject("late", "ada", time.Second), subject("", "ada", time.Hour),
		subject("nobody", "", time.Hour), subject(strings.Repeat("x", 20<<10), "ada", time.Hour))
	s.Put(t.Context(), "", subject("anonymous", "ada", time.Hour))
	for _, issuer := range []string{sso, foreign.Issuer} {
		if one, ok := s.Get("oauth:ada", issuer, "access_token"); ok {
			t.Errorf("a token is kept that is of no use: %s", one.Token)
		}
	}
	s.Put(t.Context(), "oauth:ada", subject("a1", "ada", time.Hour), subject("a2", "ada", 2*time.Hour), subject("a3", "ada", time.Hour))
	s.Put(t.Context(), "oauth:bob", subject("b1", "bob", time.Hour))
	for who, want := range map[string]string{"oauth:ada": "a2", "oauth:bob": "b1", "oauth:eve": "", "token:ada": ""} {
		if one, _ := s.Get(who, sso, "access_token"); one.Token != want {
			t.Errorf("the token of %s is %q, want %q", who, one.Token, want)
		}
	}
	one, _ := s.Get("oauth:ada", sso, "access_token")
	if _, ok := s.Get("oauth:ada", sso, "id_token"); ok {
		t.Error("an access token counts as an ID token")
	}
	if text := fmt.Sprintf("%v %+v %#v %s", one, one, one, one); strings.Contains(text, "a2") {
		t.Errorf("a token is shown: %s", text)
	}
}

// TestSubjectsForget: a logout, and a sign-in as another person, delete the tokens, and say so.
func TestSubjectsForget(t *testing.T) {
	s := access.NewSubjects()
	var forgotten []string
	s.Use(func(string) bool { return true }, func(_ context.Context, principal string) { forgotten = append(forgotten, principal) })
	id := subject("id of ada", "ada", time.Hour)
	id.Kind = "id_token"
	s.Put(t.Context(), "oauth:ann", id, subject("a1", "ada", time.Hour))
	s.Put(t.Context(), "oauth:ann", subject("b1", "bob", time.Minute))
	if _, ok := s.Get("oauth:ann", sso, "id_token"); ok || fmt.Sprint(forgotten) != "[oauth:ann]" {
		t.Errorf("after a sign-in as another person: %v, %v", ok, forgotten)
	}
	if one, _ := s.Get("oauth:ann", sso, "access_token"); one.Token != "b1" {
		t.Errorf("the token is %q", one.Token)
	}
	s.Forget(t.Context(), "oauth:ann")
	if _, ok := s.Get("oauth:ann", sso, "access_token"); ok || fmt.Sprint(forgotten) != "[oauth:ann oauth:ann]" {
		t.Errorf("after the logout: %v, %v", ok, forgotten)
	}
	var none *access.Subjects
	none.Put(t.Context(), "oauth:ann", id)
	none.Forget(t.Context(), "oauth:ann")
	if _, ok := none.Get("oauth:ann", sso, "id_token"); ok {
		t.Error("nothing has a token")
	}
}
