package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// held returns what a store holds, as "name reason: who and why".
func held(t *testing.T, b *Store) (all []Held, brief []string) {
	t.Helper()
	all, err := b.Held()
	if err != nil {
		t.Fatal(err)
	}
	brief = []string{}
	for _, h := range all {
		text := h.Name + " " + h.Reason
		if h.IsRejected() {
			text += ": " + h.Rejection.By + ": " + h.Rejection.Reason
		}
		brief = append(brief, text)
	}
	return all, brief
}

// TestReject: a rejected definition stays held for all processes, under any policy, until it is approved. Another definition
// of the same tool is a new question.
func TestReject(t *testing.T) {
	dir := t.TempDir()
	path, cache := filepath.Join(dir, FileName), filepath.Join(dir, "cache")
	gateway, person := open(t, path, cache), open(t, path, cache)
	look(t, gateway, config.TrustPin, a("add", "Adds."))
	look(t, gateway, config.TrustPin, a("add", "Adds more."), a("bad", poison))
	all, _ := held(t, person)
	begin, before := time.Now().Add(-time.Second), gateway.State()
	if err := person.Reject("ada", " it asks\nfor\u200b keys ", all...); err != nil {
		t.Fatal(err)
	}
	if gateway.State() == before {
		t.Error("the gateway does not see the rejection")
	}
	for _, policy := range []config.Trust{config.TrustPin, config.TrustReview, config.TrustAllow} {
		list, err := gateway.Check("up", policy, twoTools("Adds more.", poison))
		if err != nil || len(list) != 2 || list[0].Rejection.Reason != "it asks for keys" || list[1].Rejection.By != "ada" || list[0].Rejection.At.Before(begin) {
			t.Errorf("%s: held %+v, %v", policy, list, err)
		}
	}
	expect(t, look(t, gateway, config.TrustPin, a("add", "Adds.")))                                        // as it was pinned
	expect(t, look(t, gateway, config.TrustPin, a("add", "Adds most.")), "add changed")                    // another question
	expect(t, look(t, gateway, config.TrustPin, a("add", "Adds."), a("add", "Adds more.")), "add changed") // two of one name
	restarted := open(t, path, cache)
	look(t, restarted, config.TrustPin, a("add", "Adds most."), a("bad", poison))
	all, brief := held(t, restarted)
	expect(t, brief, "add changed", "bad suspicious: ada: it asks for keys")

	// The same may be decided again, and otherwise.
	if err := restarted.Reject("bob", "", all...); err != nil {
		t.Fatal(err)
	}
	all, brief = held(t, person)
	expect(t, brief, "add changed: bob: ", "bad suspicious: bob: ")
	look(t, gateway, config.TrustPin, a("add", "Adds more."), a("bad", poison)) // both definitions of add are rejected
	if _, brief := held(t, gateway); brief[0] != "add changed: ada: it asks for keys" {
		t.Errorf("after it came back: %v", brief)
	}
	if err := person.Approve(all[1]); err != nil {
		t.Fatal(err)
	}
	expect(t, look(t, gateway, config.TrustPin, a("bad", poison)))
	if err := person.Reject("bob", "", all[1]); !errors.Is(err, ErrNotHeld) {
		t.Errorf("rejected after the approval: %v", err)
	}
	expect(t, look(t, open(t, path, ""), config.TrustPin, a("add", "Adds more."), a("bad", poison)), "add changed")
}

// TestRejectIsBounded: what an operator writes makes neither two lines nor an unreadable file.
func TestRejectIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	b := open(t, path, "")
	names := a(`x" {"by`, poison)
	for _, reason := range []string{strings.Repeat("é", 5*MaxReason), "</script>\nversion 2\n<<<<<<<", "\xff\x00 \"} up \"add\" 0", strings.Repeat(" ", 99)} {
		look(t, b, config.TrustPin, names, a("bad", poison))
		all, _ := held(t, b)
		if err := b.Reject(reason, reason, all...); err != nil {
			t.Fatalf("%q: %v", reason, err)
		}
		data, err := os.ReadFile(path)
		if err != nil || strings.Count(string(data), "\n") != 5 || len(data) > 5*MaxReason*2 {
			t.Errorf("%q: %v, %s", reason, err, data)
		}
		again := open(t, path, "")
		look(t, again, config.TrustPin, names, a("bad", poison))
		if now, _ := held(t, again); len(now) != 2 || !now[0].IsRejected() || now[0].Rejection != now[1].Rejection || len([]rune(now[0].Rejection.Reason)) > MaxReason {
			t.Errorf("%q: %+v", reason, now)
		}
	}
	look(t, b, config.TrustPin, a(strings.Repeat("x", maxName+1), "X."))
	if all, _ := held(t, b); len(all) != 1 || b.Reject("ada", "", all...) == nil {
		t.Error("rejected what cannot be written")
	}
}

// TestRejectThatCannotBeWritten does not count, and costs no pin.
func TestRejectThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", FileName)
	b := open(t, path, "")
	_, _ = b.Check("up", config.TrustPin, twoTools("Adds.", "Fine."))
	_, _ = b.Check("up", config.TrustPin, twoTools("Adds more.", "Fine."))
	all, brief := held(t, b)
	expect(t, brief, "add changed")
	if err := b.Reject("ada", "", all...); err == nil {
		t.Error("the rejection was not written, and nobody says so")
	}
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := b.Reject("ada", "", all...); err != nil {
		t.Fatal(err)
	}
	l, err := readLock(path)
	if err != nil || len(l.pins["up"]) != 2 || len(l.rejected) != 1 {
		t.Errorf("saved: %+v, %v", l, err)
	}
}

func twoTools(add, bad string) []tool.Tool { return []tool.Tool{a("add", add), a("bad", bad)} }
