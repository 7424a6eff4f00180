package main_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/internal/audit"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// chain returns the name of a gateway's audit log.
func (s *flowsSite) chain(t *testing.T) string {
	t.Helper()
	name := ""
	testutil.Eventually(t, "the gateway has an audit log", time.Minute, func() (ok bool) {
		var err error
		name, err = audit.Chain(audit.Dir(filepath.Join(s.dir, "sallyport")))
		return err == nil
	})
	return name
}

// verifiedChain is what "log verify --cluster --json" says of a chain.
type verifiedChain struct {
	Chain, Host string
	OK          bool
	Last        int
	Head        struct{ Seq int }
	Problems    []struct{ Text string }
}

// verified verifies the chains in the store, by their names.
func (s *flowsSite) verified(t *testing.T, more ...string) (chains map[string]verifiedChain, err error) {
	t.Helper()
	out, err := s.command(append([]string{"log", "verify", "--json"}, more...)...).Output()
	var all struct{ Chains []verifiedChain }
	if bad := json.Unmarshal(out, &all); bad != nil {
		t.Logf("%v: %s", bad, out)
	}
	chains = map[string]verifiedChain{}
	for _, c := range all.Chains {
		chains[c.Chain] = c
	}
	return chains, err
}

// TestAuditCluster has three gateways. One is killed, and the chain of another is changed in the store: it is refused and named, and the
// others are verified. The records of all are shown in one view by time.
func TestAuditCluster(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 3)
	sites := []*flowsSite{newSharedSite(t, c, c.Creds), newSharedSite(t, c, c.Creds), newSharedSite(t, c, c.Creds)}
	names := []string{}
	for _, s := range sites {
		s.serve(t)
		names = append(names, s.chain(t))
	}
	one, killed, changed := sites[0], sites[1], sites[2]
	testutil.Eventually(t, "all chains are verified", lostPatience, func() bool {
		all, err := one.verified(t, "--cluster")
		ok := err == nil && len(all) == 3
		for _, name := range names {
			ok = ok && all[name].OK && all[name].Last > 1 && all[name].Head.Seq > 0 && all[name].Host != ""
		}
		return ok
	})
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.cmd.Wait() // killed
	tamper(t, c, names[2])
	for who, s := range map[string]*flowsSite{"one": one, "the changed one": changed} {
		all, err := s.verified(t, "--cluster")
		if bad := all[names[2]]; err == nil || len(all) != 3 || !all[names[0]].OK || !all[names[1]].OK || bad.OK || len(bad.Problems) != 1 || bad.Problems[0].Text != "it was edited" {
			t.Errorf("%s: %v, %+v", who, err, all)
		}
	}
	out, err := one.command("log", "verify", "--cluster").CombinedOutput()
	if parts := strings.Split(string(out), "chain "); err == nil || len(parts) != 4 || strings.Count(string(out), "FAIL ") != 1 {
		t.Errorf("%v\n%s", err, out)
	} else {
		for _, part := range parts[1:] {
			if strings.HasPrefix(part, names[2]+" (") != strings.Contains(part, "NOT INTACT") {
				t.Errorf("a chain: %s", part)
			}
		}
	}
	if all, err := one.verified(t, "--gateway", names[1]); err != nil || len(all) != 1 || !all[names[1]].OK {
		t.Errorf("the gateway that was killed: %v, %+v", err, all)
	}
	if out, err := one.command("log", "verify", "--gateway", "nobody").CombinedOutput(); err == nil || !strings.Contains(string(out), `no gateway "nobody" has audit records in the store`) || !strings.Contains(string(out), names[1]) {
		t.Errorf("an unknown one: %v\n%s", err, out)
	}
	one.wantMerged(t, names)
	one.wantChains(t, names)
	one.wantPages(t, names)
	for _, s := range []*flowsSite{one, changed} {
		if err := stop(s.cmd); err != nil {
			t.Error(err)
		}
	}
}

// tamper edits a record of a chain in the store.
func tamper(t *testing.T, c *natscluster.Cluster, chain string) {
	t.Helper()
	records, err := store.Connect(store.Remote{Server: c.Server("tamper"), Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = records.Close() }()
	log, err := records.Log("audit", store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	key := store.Key{"records", chain}
	var kept [][]byte
	for e, err := range log.Read(t.Context(), key, 0) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, bytes.Clone(e.Value))
	}
	was := string(kept[0])
	if kept[0] = bytes.Replace(kept[0], []byte(`"kind":"log.opened"`), []byte(`"kind":"log.closed"`), 1); string(kept[0]) == was {
		t.Fatalf("it begins with %s", was)
	}
	if err := log.Remove(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	for _, value := range kept {
		if _, err := log.Append(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
}

// wantMerged wants the records of all chains by time, and those of one.
func (s *flowsSite) wantMerged(t *testing.T, names []string) {
	t.Helper()
	out, err := s.command("log", "export", "--cluster").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	var last time.Time
	for line := range strings.Lines(string(out)) {
		var r struct {
			Chain, Host string
			Record      audit.Record
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Host == "" || r.Record.Time.Before(last) {
			t.Fatalf("%v: %s after %s", err, line, last)
		}
		last = r.Record.Time
		seen[r.Chain]++
	}
	if len(seen) != 3 || seen[names[0]] == 0 || seen[names[1]] == 0 || seen[names[2]] == 0 {
		t.Errorf("records of %v, not of %q", seen, names)
	}
	out, err = s.command("log", "--gateway", names[1][:8], "--kind", "log.opened").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), names[1][:8]+" ") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("records of one: %v\n%s", err, out)
	}
}

// wantPages wants that the API pages through the records of all gateways, the newest first, and through those of one that was killed.
func (s *flowsSite) wantPages(t *testing.T, names []string) {
	t.Helper()
	page := func(query string) (list struct {
		Events []struct {
			Chain, Host string
			Seq         uint64
			Time        time.Time
		}
		Next    string
		Damaged int
	}) {
		t.Helper()
		status, body := s.ask(t, http.MethodGet, "/api/audit?"+query, "", "Authorization: Bearer "+flowsToken)
		if err := json.Unmarshal(body, &list); err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d %v %s", query, status, err, body)
		}
		return list
	}
	seen, cursor, damaged, pages := map[string]int{}, "", 0, 0
	for more := true; more && pages < 100; pages++ {
		list := page("gateway=all&limit=1&cursor=" + cursor)
		for _, e := range list.Events {
			seen[e.Chain+" "+strconv.FormatUint(e.Seq, 10)]++
			seen[e.Chain]++
		}
		cursor, more, damaged = list.Next, list.Next != "", damaged+list.Damaged
	}
	for key, n := range seen {
		if strings.Contains(key, " ") && n != 1 {
			t.Errorf("record %s is on %d pages", key, n)
		}
	}
	if len(seen) == 0 || seen[names[0]] < 2 || seen[names[1]] < 2 || damaged != 1 || pages < 3 {
		t.Errorf("%d pages with %v, %d damaged", pages, seen, damaged)
	}
	for _, e := range page("gateway=" + names[1][:8]).Events {
		if e.Chain != names[1] || e.Host == "" {
			t.Errorf("a record of another gateway: %+v", e)
		}
	}
	if status, body := s.ask(t, http.MethodGet, "/api/audit?gateway=nobody", "", "Authorization: Bearer "+flowsToken); status != http.StatusNotFound || !strings.Contains(string(body), "nobody") {
		t.Errorf("an unknown gateway: %d %s", status, body)
	}
}

// wantChains wants that the dashboard verifies all chains, and refuses the last one.
func (s *flowsSite) wantChains(t *testing.T, names []string) {
	t.Helper()
	status, page := s.ask(t, http.MethodPost, "/ui/audit", "", "Authorization: Bearer "+flowsToken, "Content-Type: application/x-www-form-urlencoded")
	rows := strings.Split(string(page), "<tr>")
	if status != http.StatusOK || len(rows) != 5 {
		t.Fatalf("the page: %d %s", status, page)
	}
	for _, row := range rows[2:] {
		bad := strings.Contains(row, names[2])
		if bad != strings.Contains(row, "record 1: it was edited") || bad == strings.Contains(row, "verified") {
			t.Errorf("a chain: %s", row)
		}
	}
}
