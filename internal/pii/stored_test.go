package pii_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"sallyport/internal/pii"
)

func anyOrigin(pii.Kind, []string) bool { return true }

// sharing are the vaults of a process, and what they store.
func sharing(base int) (*pii.Vaults, *[]pii.Stored) {
	all := &[]pii.Stored{}
	vaults := &pii.Vaults{Load: func(pii.Place, *pii.Vault) {}, Lease: func(_ string, size int) int {
		from := base
		base += size
		return from
	}}
	return vaults, all
}

// store appends what has changed in a vault, as JSON gives it back.
func store(t *testing.T, v *pii.Vault, to *[]pii.Stored) {
	t.Helper()
	if err := v.StoreChanged(func(_ pii.Place, values []pii.Stored) error {
		data, err := json.Marshal(values)
		if err != nil {
			return err
		}
		return json.Unmarshal(data, to)
	}); err != nil {
		t.Fatal(err)
	}
}

// TestStoredValues: two vaults that take over each other's values restore each other's tokens, and no token means two values, also if
// both know a value and its spellings.
func TestStoredValues(t *testing.T) {
	a, fromA := sharing(0)
	b, fromB := sharing(1000)
	one, two := a.Of("ada", "s"), b.Of("ada", "s")
	tokens := map[string]string{}
	for _, v := range []*pii.Vault{one, two} {
		for i := range 30 {
			mail := fmt.Sprintf("User%d@example.org", i%20)
			tokens[v.Token(pii.Email, mail, false, "crm")] = mail
		}
	}
	store(t, one, fromA)
	store(t, two, fromB)
	one.Add(*fromB)
	two.Add(*fromA)
	for _, v := range []*pii.Vault{one, two} {
		for i := range 20 {
			mail := fmt.Sprintf("uSER%d@example.org", i) // another spelling of what both know
			token := v.Token(pii.Email, mail, false, "crm")
			if other, known := tokens[token]; known && other != mail {
				t.Errorf("%s means %s and %s", token, other, mail)
			}
			tokens[token] = mail
		}
	}
	store(t, one, fromA)
	store(t, two, fromB)
	one.Add(*fromB)
	two.Add(*fromA)
	for token, mail := range tokens {
		for _, v := range []*pii.Vault{one, two} {
			if got, _, err := v.Restore(token, anyOrigin); got != mail || err != nil {
				t.Errorf("%s is %s, not %s: %v", token, got, mail, err)
			}
		}
	}
	var none []pii.Stored
	if store(t, one, &none); none != nil {
		t.Errorf("nothing has changed: %v", none)
	}
}

// TestStoredSentAndOrigins: which upstreams may have a value, and were sent it, is taken over.
func TestStoredSentAndOrigins(t *testing.T) {
	a, fromA := sharing(0)
	b, _ := sharing(1000)
	one, two := a.Of("ada", "s"), b.Of("ada", "s")
	token := one.Token(pii.Name, "Ada Lovelace", false, "crm")
	one.Token(pii.Name, "Ada Lovelace", false, "hr")
	one.Echo("mail", "{}", true).AddSent([]pii.Known{{Kind: pii.Name, Value: "Ada Lovelace"}})
	store(t, one, fromA)
	two.Add(*fromA)
	if got, _, _ := two.Restore(token, func(_ pii.Kind, origins []string) bool { return len(origins) == 2 && origins[1] == "hr" }); got != "Ada Lovelace" {
		t.Errorf("restored %s", got)
	}
	if found := two.Echo("mail", "{}", false).Find("who is ecalevoL adA?"); len(found) != 1 {
		t.Errorf("a value that was sent is found reversed: %v", found)
	}
	if found := two.Names("talk to Ada Lovelace"); len(found) != 1 {
		t.Errorf("a known name in prose: %v", found)
	}
}

// TestStoredValuesAreBounded: values of others count as much as own ones, and the oldest are evicted.
func TestStoredValuesAreBounded(t *testing.T) {
	a, _ := sharing(0)
	v := a.Of("ada", "s")
	first := v.Token(pii.Email, "first@example.org", false, "crm")
	var more []pii.Stored
	for i := range 100_001 {
		more = append(more, pii.Stored{Kind: pii.Email, Value: fmt.Sprintf("user%d@example.org", i), Label: "EMAIL", Number: 5000 + i, Spelling: 1})
	}
	v.Add(more)
	if _, _, err := v.Restore(first, anyOrigin); !errors.Is(err, pii.ErrForgotten) {
		t.Errorf("the oldest value: %v", err)
	}
	if got, _, _ := v.Restore("[EMAIL_105000]", anyOrigin); got != "user100000@example.org" {
		t.Errorf("the newest value is %s", got)
	}
}
