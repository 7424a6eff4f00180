package access_test

import (
	"context"
	"testing"
	"time"

	"sallyport/internal/access"
	"sallyport/internal/sharedrecords"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
)

// subjects returns the tokens of people as one gateway has them.
func (g gateways) subjects(t *testing.T) *access.Subjects {
	t.Helper()
	in, err := store.Connect(store.Remote{Server: g.c.Server(t.Name()), Seal: g.key, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	records, err := sharedrecords.OpenSealed(in, "subjects", store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s := access.NewSubjects()
	s.Share(records)
	s.Use(func(issuer string) bool { return issuer == "https://idp" }, func(context.Context, string) {})
	return s
}

// TestSharedSubjects: the token with which a person comes to one gateway is exchanged at all, until the person logs out anywhere or another
// person comes under the same principal.
func TestSharedSubjects(t *testing.T) {
	g := newGateways(t)
	one, two := g.subjects(t), g.subjects(t)
	ctx := t.Context()
	subject := func(token, kind, id string, life time.Duration) access.Subject {
		return access.Subject{Token: token, Kind: kind, Issuer: "https://idp", ID: id, Expires: time.Now().Add(life)}
	}
	want := func(s *access.Subjects, kind, token string) {
		t.Helper()
		if got, ok := s.Get("oauth:ann", "https://idp", kind); got.Token != token || ok != (token != "") {
			t.Errorf("%s: %q, %v, want %q", kind, got.Token, ok, token)
		}
	}
	one.Put(ctx, "oauth:ann", subject("t1", "access_token", "ann", time.Hour), subject("i1", "id_token", "ann", time.Hour))
	want(two, "access_token", "t1")
	want(two, "id_token", "i1")
	two.Put(ctx, "oauth:ann", subject("t2", "access_token", "ann", 2*time.Hour), subject("i0", "id_token", "ann", time.Minute))
	time.Sleep(sharedrecords.Recent)
	want(one, "access_token", "t2")
	want(one, "id_token", "i1") // it lives longer
	if _, ok := two.Get("oauth:bob", "https://idp", "access_token"); ok {
		t.Error("a token of another principal")
	}
	two.Put(ctx, "oauth:ann", subject("t3", "access_token", "eve", time.Hour))
	time.Sleep(sharedrecords.Recent)
	want(one, "access_token", "t3")
	want(one, "id_token", "")
	one.Forget(ctx, "oauth:ann")
	want(one, "access_token", "")
	time.Sleep(sharedrecords.Recent)
	want(two, "access_token", "")
	two.Put(ctx, "oauth:ann", subject("t3", "access_token", "eve", time.Hour)) // the same one comes again
	want(two, "access_token", "t3")
	g.c.Kill(t, 0)
	time.Sleep(sharedrecords.Recent)
	want(two, "access_token", "t3")
	two.Put(ctx, "oauth:ann", subject("t4", "access_token", "eve", 2*time.Hour))
	g.c.Start(t, 0)
}
