package access_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/access"
	"sallyport/internal/sharedrecords"
	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tool"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	m.Run()
}

// shared returns the place of the tokens as one gateway or command has it, and its bucket.
func shared(t *testing.T, c *natscluster.Cluster) (access.Place, *store.Bucket) {
	t.Helper()
	in := storetest.Connect(t, c.Server(t.Name()))
	records, err := sharedrecords.Open(in, "tokens", store.Limits{Records: 10, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := in.Bucket(store.PrivatePrefix+"tokens", store.Limits{Records: 10, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	return access.InRecords(records), bucket
}

// TestSharedTokens: each gateway of a store takes a token as soon as it is made, until it is revoked anywhere.
func TestSharedTokens(t *testing.T) {
	c := natscluster.Start(t, 1)
	command, bucket := shared(t, c)
	first, _ := shared(t, c)
	second, _ := shared(t, c)
	one, two := access.OpenTokens(first, nil), access.OpenTokens(second, nil)
	if exist(t, one) {
		t.Error("there are tokens")
	}
	ctx := t.Context()
	text, made, err := access.Create(ctx, command, access.TokenSpec{Name: "ci", Scopes: []tool.Scope{tool.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tokens := range []*access.Tokens{one, two} {
		if v, err := tokens.Check(ctx, text); err != nil || v.Principal != "token:ci" || !tokens.Alive(ctx, made.ID) {
			t.Errorf("%+v, %v", v, err)
		}
	}
	raw, err := bucket.Get(ctx, store.Key{"tokens"})
	if err != nil || bytes.Contains(raw.Value, []byte(text[12:])) {
		t.Errorf("the store has the token: %v", err)
	}
	one.SaveUsage(ctx)
	two.SaveUsage(ctx)
	if all, err := access.List(ctx, command); err != nil || len(all) != 1 || all[0].Used == nil {
		t.Errorf("%+v, %v", all, err)
	}
	if err := access.Revoke(ctx, second, "ci"); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Check(ctx, text); !errors.Is(err, access.ErrUnknown) || two.Alive(ctx, made.ID) {
		t.Errorf("revoked here: %v", err)
	}
	time.Sleep(sharedrecords.Recent)
	if _, err := one.Check(ctx, text); !errors.Is(err, access.ErrUnknown) || one.Alive(ctx, made.ID) {
		t.Errorf("revoked at the other: %v", err)
	}
}

// TestSharedTokensAtOnce: of several commands that make and revoke tokens at the same time, none undoes what another did.
func TestSharedTokensAtOnce(t *testing.T) {
	c := natscluster.Start(t, 1)
	var work sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		in, _ := shared(t, c)
		work.Go(func() {
			for range 5 {
				_, _, err := access.Create(t.Context(), in, access.TokenSpec{Name: name, Scopes: tool.UserScopes()})
				if err == nil {
					err = access.Revoke(t.Context(), in, name)
				}
				if err != nil {
					t.Error(err)
				}
			}
			if _, _, err := access.Create(t.Context(), in, access.TokenSpec{Name: name, Scopes: tool.UserScopes()}); err != nil {
				t.Error(err)
			}
			_, _, _ = access.Create(t.Context(), in, access.TokenSpec{Name: "same", Scopes: tool.UserScopes()})
		})
	}
	work.Wait()
	in, _ := shared(t, c)
	all, err := access.List(t.Context(), in)
	if names := namesOf(all); err != nil || names != "a b c same" {
		t.Errorf("%s, %v", names, err)
	}
}

func namesOf(all []access.Token) string {
	var names []string
	for _, one := range all {
		names = append(names, one.Name)
	}
	return strings.Join(names, " ")
}

// TestSharedTokensOutage: without the store, tokens that were known a moment ago are accepted, and it is told of others that they cannot
// be checked. A record that cannot be read opens nothing.
func TestSharedTokensOutage(t *testing.T) {
	c := natscluster.Start(t, 1)
	in, bucket := shared(t, c)
	tokens := access.OpenTokens(in, nil)
	ctx := t.Context()
	text, _, err := access.Create(ctx, in, access.TokenSpec{Name: "ci", Scopes: []tool.Scope{tool.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	other, _ := create(t, t.TempDir(), "ci", 0, tool.ScopeRead)
	c.Kill(t, 0)
	time.Sleep(sharedrecords.Recent)
	if _, err := tokens.Check(ctx, text); err != nil {
		t.Errorf("a known one: %v", err)
	}
	if _, err := tokens.Check(ctx, other); !errors.Is(err, access.ErrUnavailable) || errors.Is(err, access.ErrUnknown) {
		t.Errorf("an unknown one: %v", err)
	}
	if _, _, err := access.Create(ctx, in, access.TokenSpec{Name: "new", Scopes: tool.UserScopes()}); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("made without the store: %v", err)
	}
	c.Start(t, 0)
	for _, content := range []string{"{", `{"version":2,"tokens":[]}`} {
		for {
			_, err := bucket.Put(ctx, store.Key{"tokens"}, []byte(content))
			if err == nil {
				break
			}
		}
		for until := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			if _, err := tokens.Check(ctx, text); errors.Is(err, access.ErrUnavailable) && !tokens.Alive(ctx, "x") {
				break
			} else if time.Now().After(until) {
				t.Fatalf("%s: %v", content, err)
			}
		}
		if err := access.Revoke(ctx, in, "ci"); !errors.Is(err, access.ErrUnavailable) {
			t.Errorf("%s is written over: %v", content, err)
		}
	}
}

// TestMoveTokens: a data directory brings its tokens into the store once: what is revoked there stays so, and a name that is taken there
// is told.
func TestMoveTokens(t *testing.T) {
	c := natscluster.Start(t, 1)
	in, _ := shared(t, c)
	ctx, dir, another := t.Context(), t.TempDir(), t.TempDir()
	first, _ := create(t, dir, "ci", 0, tool.ScopeRead)
	second, _ := create(t, another, "ci", 0, tool.ScopeRead)
	third, _ := create(t, another, "ops", 0, tool.ScopeRead)
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	for _, from := range []string{dir, another, another, t.TempDir(), ""} {
		if err := access.MoveTokens(ctx, from, in, log); err != nil {
			t.Fatal(err)
		}
	}
	tokens := access.OpenTokens(in, nil)
	for token, want := range map[string]error{first: nil, second: access.ErrUnknown, third: nil} {
		if _, err := tokens.Check(ctx, token); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if got := text.String(); strings.Count(got, "level=INFO") != 2 || !strings.Contains(got, "names=ci") {
		t.Error(got)
	}
	if err := access.Revoke(ctx, in, "ops"); err != nil {
		t.Fatal(err)
	}
	if err := access.MoveTokens(ctx, another, in, log); err != nil { // its gateway starts again
		t.Fatal(err)
	}
	if _, err := tokens.Check(ctx, third); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("a revoked token is back: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, access.Folder, "tokens.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}
