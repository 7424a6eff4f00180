package access_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/access"
	"sallyport/internal/tool"
)

func create(tb testing.TB, dir, name string, life time.Duration, scopes ...tool.Scope) (string, access.Token) {
	tb.Helper()
	text, made, err := access.Create(tb.Context(), access.InFolder(dir, nil), access.TokenSpec{Name: name, Scopes: scopes, Lifetime: life})
	if err != nil {
		tb.Fatal(err)
	}
	return text, made
}

func exist(t *testing.T, tokens *access.Tokens) bool {
	t.Helper()
	some, err := tokens.Exist(t.Context())
	if err != nil {
		t.Error(err)
	}
	return some
}

func file(dir string) string { return filepath.Join(dir, access.Folder, "tokens.json") }

// TestTokens: a gateway that runs takes a token as soon as it is made, for what it was made, until it is revoked.
func TestTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := access.OpenTokens(access.InFolder(dir, nil), nil)
	if exist(t, tokens) {
		t.Error("there are tokens")
	}
	text, made := create(t, dir, "ci", 0, tool.ScopeRead, tool.ScopeExecute)
	v, err := tokens.Check(t.Context(), text)
	if err != nil || v.Principal != "token:ci" || v.Operator != "" || !v.May(tool.ScopeExecute) || v.May(tool.ScopeMCP) || v.Token != made.ID {
		t.Errorf("%+v, %v", v, err)
	}
	ops, _ := create(t, dir, "ops", 0, tool.ScopeOperate)
	if v, err := tokens.Check(t.Context(), ops); err != nil || v.Operator != "token:ops" || !v.May(tool.ScopeMCP) {
		t.Errorf("%+v, %v", v, err)
	}
	if kept, err := os.ReadFile(file(dir)); err != nil || bytes.Contains(kept, []byte(text[12:])) || bytes.Contains(kept, []byte(ops[12:])) {
		t.Errorf("the file has a token in it, or not: %v", err)
	}
	if info, err := os.Stat(file(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	tokens.SaveUsage(t.Context())
	if all, err := access.List(t.Context(), access.InFolder(dir, nil)); err != nil || len(all) != 2 || all[0].Name != "ci" || all[0].Used == nil {
		t.Errorf("%+v, %v", all, err)
	}
	if err := access.Revoke(t.Context(), access.InFolder(dir, nil), "ci"); err != nil || tokens.Alive(t.Context(), made.ID) {
		t.Errorf("revoked: %v", err)
	}
	if _, err := tokens.Check(t.Context(), text); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("revoked: %v", err)
	}
	if _, err := tokens.Check(t.Context(), ops); err != nil {
		t.Errorf("another: %v", err)
	}
}

// TestWrongTokens: nothing but the token itself is taken, and a typing mistake is told from a wrong token.
func TestWrongTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := access.OpenTokens(access.InFolder(dir, nil), nil)
	text, made := create(t, dir, "ci", 0, tool.ScopeRead)
	other, _ := create(t, t.TempDir(), "ci", 0, tool.ScopeRead)
	for name, test := range map[string]struct {
		text     string
		mistyped bool
	}{
		"empty":         {"", false},
		"another's":     {other, false},
		"one letter":    {text[:20] + string(rune(text[20]^1)) + text[21:], true},
		"cut":           {text[:len(text)-1], true},
		"longer":        {text + "x", true},
		"the id":        {"sp_" + made.ID, true},
		"the digest":    {made.Digest, false},
		"prefix":        {"sp_", true},
		"id of another": {"sp_" + made.ID + other[11:], true},
	} {
		v, err := tokens.Check(t.Context(), test.text)
		if !errors.Is(err, access.ErrUnknown) || errors.Is(err, access.ErrMistyped) != test.mistyped || v.Principal != "" {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	var none *access.Tokens
	if _, err := none.Check(t.Context(), text); err == nil || exist(t, none) || none.Alive(t.Context(), made.ID) {
		t.Error("no tokens are some")
	}
}

// TestDamage: a file that was changed by hand, cut or replaced opens nothing, says so, and is not written over.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, made := create(t, dir, "ci", 0, tool.ScopeRead)
	whole, err := os.ReadFile(file(dir))
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{
		"more scopes": bytes.Replace(whole, []byte(`"read"`), []byte(`"operate"`), 1),
		"cut":         whole[:len(whole)-9],
		"empty":       {},
		"newer":       bytes.Replace(whole, []byte(`"version":1`), []byte(`"version":2`), 1),
	} {
		var log bytes.Buffer
		tokens := access.OpenTokens(access.InFolder(dir, slog.New(slog.NewTextHandler(&log, nil))), nil)
		if _, err := tokens.Check(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file(dir), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := tokens.Check(t.Context(), text); err == nil || tokens.Alive(t.Context(), made.ID) || exist(t, tokens) || strings.Count(log.String(), "level=ERROR") != 1 {
			t.Errorf("%s: %v\n%s", name, err, log.String())
		}
		if _, _, err := access.Create(t.Context(), access.InFolder(dir, nil), access.TokenSpec{Name: "new", Scopes: tool.UserScopes()}); err == nil {
			t.Errorf("%s: written over", name)
		}
		if err := os.WriteFile(file(dir), whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWishes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	create(t, dir, "ci", 0, tool.ScopeRead)
	for want, w := range map[string]access.TokenSpec{
		`invalid token name "A B"`:       {Name: "A B", Scopes: tool.Scopes()},
		`invalid token name "oauth:ann"`: {Name: "oauth:ann", Scopes: tool.Scopes()},
		"at least one scope":             {Name: "x"},
		"token ci already exists":        {Name: "ci", Scopes: tool.Scopes()},
		`invalid token name`:             {Name: "\x1b[2J", Scopes: tool.Scopes()},
	} {
		if _, _, err := access.Create(t.Context(), access.InFolder(dir, nil), w); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := access.Revoke(t.Context(), access.InFolder(dir, nil), "c"); err == nil || !strings.Contains(err.Error(), "did you mean ci?") {
		t.Error(err)
	}
	if _, err := access.ParseScopes([]string{"exeute"}); err == nil || !strings.Contains(err.Error(), "did you mean execute?") {
		t.Error(err)
	}
	for text, want := range map[string]string{"600/m": "600/m", "5/s": "5/s", "1/h": "1/h", "0": "0"} {
		if r, err := access.ParseRate(text); err != nil || r.String() != want {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "60", "60/d", "-1/s", "0/s", "1.5/m", "99999999/s", "60/m/s", "m"} {
		if r, err := access.ParseRate(text); err == nil {
			t.Errorf("%s is %v", text, r)
		}
	}
}

func openSession(t *testing.T, s *access.Sessions, v access.Caller) (cookie string) {
	t.Helper()
	cookie, err := s.Open(t.Context(), v)
	if err != nil {
		t.Error(err)
	}
	return cookie
}

// TestSessions: a code opens once and for a minute; a session ends by idling, by age, by its token, and when it is closed.
func TestSessions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		tokens := access.OpenTokens(access.InFolder(dir, nil), nil)
		s := access.NewSessions(tokens)
		code, late := s.NewCode(), s.NewCode()
		v, ok := s.Redeem(code)
		if !ok || v.Operator != access.OperatorName || v.Principal != "" {
			t.Errorf("%+v, %v", v, ok)
		}
		if _, ok := s.Redeem(code); ok {
			t.Error("a code opens twice")
		}
		first := s.NewCode()
		time.Sleep(time.Second)
		for range 16 {
			s.NewCode()
		}
		if _, ok := s.Redeem(first); ok {
			t.Error("there are more codes than there can be")
		}
		time.Sleep(time.Minute)
		if _, ok := s.Redeem(late); ok {
			t.Error("a code opens after its time")
		}
		cookie := openSession(t, s, v)
		for range 15 {
			time.Sleep(11 * time.Hour)
			if got, ok := lookUp(t, s, cookie); !ok || got.By != access.BySession {
				t.Fatal("a session that is used has ended")
			}
		}
		time.Sleep(4 * time.Hour)
		if _, ok := lookUp(t, s, cookie); ok {
			t.Error("a session lasts more than a week")
		}
		idle, closed := openSession(t, s, v), openSession(t, s, v)
		if _, err := s.Close(t.Context(), closed); err != nil {
			t.Error(err)
		}
		if _, ok := lookUp(t, s, closed); ok {
			t.Error("a closed session goes on")
		}
		time.Sleep(12 * time.Hour)
		if _, ok := lookUp(t, s, idle); ok {
			t.Error("an idle session goes on")
		}
		text, _ := create(t, dir, "a", time.Hour, tool.ScopeRead)
		revoked, _ := create(t, dir, "b", 0, tool.ScopeRead)
		byToken := func(text string) string {
			v, err := tokens.Check(t.Context(), text)
			if err != nil {
				t.Fatal(err)
			}
			return openSession(t, s, v)
		}
		expiring, revoking := byToken(text), byToken(revoked)
		if err := access.Revoke(t.Context(), access.InFolder(dir, nil), "b"); err != nil {
			t.Fatal(err)
		}
		if _, ok := lookUp(t, s, revoking); ok {
			t.Error("the session of a revoked token goes on")
		}
		if _, ok := lookUp(t, s, expiring); !ok {
			t.Error("another's session has ended")
		}
		time.Sleep(time.Hour)
		if _, ok := lookUp(t, s, expiring); ok {
			t.Error("the session of an expired token goes on")
		}
		if _, err := tokens.Check(t.Context(), text); err == nil {
			t.Error("an expired token is taken")
		}
		oldest := openSession(t, s, v)
		for range 256 {
			time.Sleep(time.Second)
			openSession(t, s, v)
		}
		if _, ok := lookUp(t, s, oldest); ok {
			t.Error("there are more sessions than there can be")
		}
	})
}

// TestLimits: a period's worth at once, then as it comes in; each key for itself, in bounded memory.
func TestLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := access.NewLimits(access.Rate{Count: 60, Per: time.Minute})
		for i := range 60 {
			if s := l.Take("a", access.Rate{}); !s.OK || s.Remaining != 59-i {
				t.Fatalf("%d: %+v", i, s)
			}
		}
		s := l.Take("a", access.Rate{})
		if s.OK || s.RetryAfter != time.Second || s.ResetAfter != time.Minute {
			t.Errorf("%+v", s)
		}
		if !l.Take("b", access.Rate{}).OK || !l.Take("c", access.Rate{Count: 1, Per: time.Hour}).OK || l.Take("c", access.Rate{Count: 1, Per: time.Hour}).OK {
			t.Error("keys are not counted apart")
		}
		time.Sleep(time.Second)
		if !l.Take("a", access.Rate{}).OK || l.Take("a", access.Rate{}).OK {
			t.Error("what comes in is not a second's worth")
		}
		taken := 0
		for i := range 10_000 {
			if l.Take("flood "+string(rune(i+0x4e00)), access.Rate{}).OK {
				taken++
			}
		}
		if taken > 4096+60 {
			t.Errorf("%d keys are counted apart", taken)
		}
		if s := access.NewLimits(access.Rate{}).Take("a", access.Rate{}); !s.OK || s.Rate.Count != 0 {
			t.Errorf("no limit is %+v", s)
		}
	})
}

func FuzzCheck(f *testing.F) {
	dir := f.TempDir()
	text, _ := create(f, dir, "ci", 0, tool.ScopeRead)
	tokens := access.OpenTokens(access.InFolder(dir, nil), nil)
	f.Add(text)
	f.Add("sp_" + strings.Repeat("0", 58))
	f.Fuzz(func(t *testing.T, brought string) {
		if v, err := tokens.Check(t.Context(), brought); err == nil && (brought != text || v.Principal != "token:ci") {
			t.Errorf("%q is %+v", brought, v)
		}
	})
}

// BenchmarkCheck is what a request pays for its token: a stat, and a digest.
func BenchmarkCheck(b *testing.B) {
	dir := b.TempDir()
	text, _ := create(b, dir, "ci", 0, tool.ScopeRead)
	tokens := access.OpenTokens(access.InFolder(dir, nil), nil)
	for b.Loop() {
		if _, err := tokens.Check(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
}
