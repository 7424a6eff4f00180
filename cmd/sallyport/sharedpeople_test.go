package main_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// wantAnswer waits until a gateway answers a request with a token with a status.
func (s *flowsSite) wantAnswer(t *testing.T, token string, status int) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("the answer has the status %d", status), 20*time.Second, func() bool {
		got, _ := s.ask(t, http.MethodGet, "/api/executions", "", "Authorization: Bearer "+token)
		return got == status
	})
}

// newToken makes a token that may read.
func (s *flowsSite) newToken(t *testing.T, name string) string {
	t.Helper()
	made, err := s.command("token", "create", name, "--scope", "read").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(made))
}

// TestSharedTokens has two gateways of one store: a token that a command makes is accepted by both, with the data directories that each
// has, and refused by both when a command revokes it at the other. One of a data directory is moved to the store.
func TestSharedTokens(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 3)
	one, two := newFlowsSite(t), newSharedSite(t, c, c.Creds)
	old := one.newToken(t, "old")
	one.share(t, c, c.Creds)
	one.serve(t)
	two.serve(t)
	one.wantAnswer(t, old, http.StatusOK)
	two.wantAnswer(t, old, http.StatusOK)
	token := two.newToken(t, "new")
	if status, answer := one.ask(t, http.MethodGet, "/api/executions", "", "Authorization: Bearer "+token); status != http.StatusOK {
		t.Errorf("a new token at the other gateway: %d %s", status, answer)
	}
	out, err := one.command("token", "list").Output()
	if list := string(out); err != nil || !strings.Contains(list, "new ") || !strings.Contains(list, "old ") {
		t.Errorf("%v\n%s", err, list)
	}
	for _, name := range []string{"old", "new"} {
		if out, err := one.command("token", "revoke", name).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	for _, s := range []*flowsSite{one, two} {
		s.wantAnswer(t, token, http.StatusUnauthorized)
		s.wantAnswer(t, old, http.StatusUnauthorized)
	}
	for _, s := range []*flowsSite{one, two} {
		if err := stop(s.cmd); err != nil {
			t.Error(err)
		}
	}
}
