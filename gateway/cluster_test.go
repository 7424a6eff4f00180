package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/catalog"
	"sallyport/gateway/feedback"
	"sallyport/gateway/trust"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/seal"
	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tool"
)

// twins are two gateways that share a store on a real server, with the same upstreams.
type twins struct {
	servers *natscluster.Cluster
	sites   map[string]*site
	all     [2]*gateway.Gateway
	records [2]*store.Store
	locks   [2]string // the lock file of each
}

// openTwins opens two gateways with the settings of change.
func openTwins(t *testing.T, change func(*config.Config)) *twins {
	t.Helper()
	w := &twins{servers: natscluster.Start(t, 1), sites: map[string]*site{"firm": newSite(t, company), "web": newSite(t, company)}}
	key, err := seal.New([]byte(strings.Repeat("k", seal.Size)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.all {
		w.records[i] = storetest.ConnectRemote(t, store.Remote{Server: w.servers.Server(""), Seal: key})
		cfg := settings(w.sites)
		cfg.Dir = t.TempDir()
		change(cfg)
		w.all[i] = open(t, cfg, &gateway.Options{Records: w.records[i], DataDir: t.TempDir(), CacheDir: t.TempDir(), LockFile: filepath.Join(cfg.Dir, trust.FileName)})
		w.locks[i] = filepath.Join(cfg.Dir, trust.FileName)
		w.all[i].Catalog.WaitConnected(t.Context())
	}
	return w
}

// call calls a tool at a gateway.
func (w *twins) call(ctx context.Context, at int, upstream, name string) error {
	_, err := w.all[at].Call(ctx, tool.Call{Tool: tool.ID{Upstream: upstream, Name: name}, Args: json.RawMessage("{}")})
	return err
}

// until waits for a condition after the server was started again.
func (w *twins) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testutil.Eventually(t, what, time.Minute, ok)
}

// TestLimitsOfCluster: gateways that share a store allow together what the limit says, also at the same time.
func TestLimitsOfCluster(t *testing.T) {
	t.Parallel()
	w := openTwins(t, func(c *config.Config) {
		c.Policy = policy.Settings{On: true, Rules: []policy.Rule{
			{Name: "few", Tools: []string{"web.get"}, Then: policy.Limit, Limit: &policy.Limits{Calls: 20, Per: "day"}},
			{Name: "none", Tools: []string{"web.get_secret"}, Then: policy.Limit, Limit: &policy.Limits{Calls: 1, Per: "day", By: "everyone"}},
		}}
	})
	var work sync.WaitGroup
	var allowed atomic.Int32
	for i := range 40 {
		work.Go(func() {
			err := w.call(tool.WithPrincipal(t.Context(), "ada"), i%2, "web", "get")
			switch {
			case err == nil:
				allowed.Add(1)
			case tool.AsError(err).Kind != tool.Limit:
				t.Error(err)
			}
		})
	}
	work.Wait()
	if n := allowed.Load(); n != 20 {
		t.Errorf("%d calls were allowed by a limit of 20", n)
	}
	if err := w.call(tool.WithPrincipal(t.Context(), "eve"), 1, "web", "get"); err != nil {
		t.Errorf("another principal: %v", err)
	}
	if err := w.call(tool.WithPrincipal(t.Context(), "ada"), 0, "web", "get_secret"); err != nil {
		t.Error(err)
	}
	wantError(t, w.call(tool.WithPrincipal(t.Context(), "eve"), 1, "web", "get_secret"), tool.Limit, "its limit is used up")

	// What cannot be counted is refused, until the server answers.
	w.servers.Kill(t, 0)
	err := w.call(tool.WithPrincipal(t.Context(), "bob"), 0, "web", "get")
	wantError(t, err, tool.Limit, "the store of the limit does not answer: try again later")
	before := w.sites["web"].hits.Load()
	if before != 22 {
		t.Errorf("the upstream saw %d calls, of 22 that were allowed", before)
	}
	w.servers.Start(t, 0)
	w.until(t, "calls are counted again", func() bool { return w.call(tool.WithPrincipal(t.Context(), "bob"), 1, "web", "get") == nil })
}

// TestLabelsOfCluster: what a session has read at one gateway restricts it at the others.
func TestLabelsOfCluster(t *testing.T) {
	t.Parallel()
	w := openTwins(t, func(c *config.Config) {
		c.Policy = policy.Settings{On: true, Default: policy.Allow, Flow: policy.FlowDeny}
		for i := range c.Upstreams {
			if c.Upstreams[i].Name == "web" {
				c.Upstreams[i].Labels = []string{policy.Untrusted, policy.External}
			} else {
				c.Upstreams[i].Labels = []string{policy.Private}
			}
		}
	})
	ada := tool.WithSession(tool.WithPrincipal(t.Context(), "ada"), "one")
	for _, read := range []struct {
		at       int
		upstream string
	}{{0, "web"}, {1, "firm"}} {
		if err := w.call(ada, read.at, read.upstream, "get"); err != nil {
			t.Fatal(err)
		}
	}
	for at := range w.all {
		wantError(t, w.call(ada, at, "web", "post"), tool.Denied, "may no longer send data outside")
		var labels []string
		for _, o := range w.all[at].Guard.SessionOrigins(ada) {
			labels = append(labels, o.Label)
		}
		if !slices.Equal(labels, []string{policy.Private, policy.Untrusted}) {
			t.Errorf("gateway %d knows %v", at, labels)
		}
		if err := w.call(tool.WithSession(ada, "two"), at, "web", "post"); err != nil {
			t.Errorf("another session: %v", err)
		}
	}

	// Without the store it is not known what a session has read elsewhere.
	w.servers.Kill(t, 0)
	wantError(t, w.call(tool.WithSession(ada, "three"), 0, "web", "post"), tool.Denied, "may no longer send data outside")
	w.servers.Start(t, 0)
	w.until(t, "labels are read again", func() bool { return w.call(tool.WithSession(ada, "three"), 0, "web", "post") == nil })
}

// TestLearningOfCluster: what one gateway learns of results and of searches, the others know.
func TestLearningOfCluster(t *testing.T) {
	t.Parallel()
	w := openTwins(t, func(*config.Config) {})
	id := tool.ID{Upstream: "firm", Name: "get"}
	observed := func(at int) *tool.Observed {
		e, ok := w.all[at].Catalog.Lookup(id)
		if !ok {
			return nil
		}
		return w.all[at].Catalog.WithObserved(e).Observed
	}
	if observed(1) != nil {
		t.Fatal("there is a shape before the first call")
	}
	if _, err := w.all[0].Call(t.Context(), tool.Call{Tool: id, Args: json.RawMessage(`{"size":3}`)}); err != nil {
		t.Fatal(err)
	}
	w.until(t, "the other gateway knows the shape", func() bool { return observed(1) != nil })
	if a, b := observed(0), observed(1); a.Count != b.Count || a.Shape.Kinds != b.Shape.Kinds {
		t.Errorf("%+v and %+v", a, b)
	}

	// Both count the same calls; a third one finds the sum.
	who, words, digest := feedback.Caller{Principal: "ada", Session: "s"}, map[string]float64{"payroll": 2, "figures": 1}, strings.Repeat("d", 32)
	strength := func(s *feedback.Store) float64 {
		return s.Boost("ada", words, func(tool.ID) string { return digest })[id]
	}
	var boosts []float64
	for i := range w.all {
		shared, err := feedback.NewShared(w.records[i])
		if err != nil {
			t.Fatal(err)
		}
		s := feedback.New(shared, &feedback.Options{Logger: testutil.Logger(t)})
		s.RecordSearch(who, words, []tool.ID{id})
		s.RecordCall(who, "", id, digest)
		s.Close()
		reader := feedback.New(shared, nil)
		boosts = append(boosts, strength(reader))
		reader.Close()
	}
	if boosts[0] <= 0 || boosts[1] <= boosts[0] {
		t.Errorf("boosted by %v after one call, by %v after two", boosts[0], boosts[1])
	}
}

// TestPinsOfCluster: a definition that is approved or rejected at one gateway, or in its lock file, is so at the others.
func TestPinsOfCluster(t *testing.T) {
	t.Parallel()
	w := openTwins(t, func(c *config.Config) {
		for i := range c.Upstreams {
			c.Upstreams[i].Trust = config.TrustReview
		}
	})
	operator := tool.WithOperator(t.Context(), "ada")
	review := func(at int, name string, reject bool) {
		t.Helper()
		id := tool.ID{Upstream: "firm", Name: name}
		held, err := w.all[at].Catalog.HeldTools(operator)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(held, func(h catalog.HeldTool) bool { return h.ID == id })
		if i < 0 {
			t.Fatalf("%v is not held: %+v", id, held)
		}
		if err := w.all[at].Catalog.ReviewHeld(operator, id, catalog.HeldReview{Digest: held[i].Digest, Reject: reject, Reason: "not for us"}); err != nil {
			t.Fatal(err)
		}
	}
	for at := range w.all {
		wantError(t, w.call(t.Context(), at, "firm", "get"), tool.Denied, "nobody has approved it")
	}
	review(0, "get", false)
	w.until(t, "the other gateway has the approval", func() bool { return w.call(t.Context(), 1, "firm", "get") == nil })
	review(1, "post", true)
	w.until(t, "the other gateway has the rejection", func() bool {
		err := w.call(t.Context(), 0, "firm", "post")
		return err != nil && strings.Contains(err.Error(), "not for us")
	})

	// A person approves with the lock file of one machine, as a merge in version control does.
	file, err := os.ReadFile(w.locks[1])
	if err != nil {
		t.Fatal(err)
	}
	held, err := w.all[1].Catalog.HeldTools(operator)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(held, func(h catalog.HeldTool) bool { return h.ID == tool.ID{Upstream: "firm", Name: "drop"} })
	if err := os.WriteFile(w.locks[1], append(file, []byte("firm \"drop\" "+held[i].Digest+"\n")...), 0o600); err != nil {
		t.Fatal(err)
	}
	w.until(t, "the other gateway has the line", func() bool { return w.call(t.Context(), 0, "firm", "drop") == nil })
	w.until(t, "the files are copies", func() bool {
		a, b := linesOf(w.locks[0]), linesOf(w.locks[1])
		return slices.ContainsFunc(a, func(line string) bool { return strings.Contains(line, "drop") }) && slices.Equal(a, b)
	})

	// A file that is gone is written again, and unpins nothing.
	if err := os.Remove(w.locks[1]); err != nil {
		t.Fatal(err)
	}
	w.until(t, "the file is a copy again", func() bool { return slices.Equal(linesOf(w.locks[0]), linesOf(w.locks[1])) })
	for at := range w.all {
		if err := w.call(t.Context(), at, "firm", "get"); err != nil {
			t.Error(err)
		}
	}

	// Without the store nothing can be approved, and what was approved is valid.
	w.servers.Kill(t, 0)
	if err := w.call(t.Context(), 1, "firm", "get"); err != nil { // calls are refused as soon as it is known that the store is away
		t.Error(err)
	}
	err = w.all[0].Catalog.ReviewHeld(operator, tool.ID{Upstream: "firm", Name: "get_secret"}, catalog.HeldReview{Digest: digestOf(held, "get_secret")})
	wantError(t, err, tool.Internal, "the decision cannot be kept")
}

// linesOf returns the lines of a file, sorted.
func linesOf(path string) []string {
	data, _ := os.ReadFile(path) // no lines if there is none yet
	return slices.Sorted(strings.SplitSeq(string(data), "\n"))
}

// digestOf returns the digest of a held tool of the firm.
func digestOf(held []catalog.HeldTool, name string) string {
	for _, h := range held {
		if h.ID == (tool.ID{Upstream: "firm", Name: name}) {
			return h.Digest
		}
	}
	return ""
}

// TestTokensOfCluster: a token of personal data that one gateway gave means the same at the others, in the same session only, and the
// servers see no value.
func TestTokensOfCluster(t *testing.T) {
	t.Parallel()
	w := openTwins(t, func(c *config.Config) {
		c.Privacy.Mode = config.PrivacyTokenize
	})
	var got atomic.Pointer[string]
	w.sites["firm"].tool("keep", "Keep it.", `"additionalProperties":true`, func(args json.RawMessage) *mcp.CallToolResult {
		got.Store(new(string(args)))
		return text("kept")
	})
	for i := range w.all {
		w.until(t, "the tool is listed", func() bool { _, ok := w.all[i].Catalog.Lookup(tool.ID{Upstream: "firm", Name: "keep"}); return ok })
	}
	ada := tool.WithSession(tool.WithPrincipal(t.Context(), "ada"), "one")
	use := func(ctx context.Context, at int, name, args string) (string, error) {
		r, err := w.all[at].Call(ctx, tool.Call{Tool: tool.ID{Upstream: "firm", Name: name}, Args: json.RawMessage(args)})
		if err != nil {
			return "", err
		}
		return r.Content[0].Text, nil
	}
	read, err := use(ada, 0, "get", `{"to":"ada.lovelace@example.org"}`)
	token := regexp.MustCompile(`\[EMAIL_[0-9_]+\]`).FindString(read)
	if err != nil || token == "" || strings.Contains(read, "lovelace") {
		t.Fatalf("%s, %v", read, err)
	}
	for at := range w.all {
		if _, err := use(ada, at, "keep", `{"mail":"`+token+`"}`); err != nil || *got.Load() != `{"mail":"ada.lovelace@example.org"}` {
			t.Errorf("gateway %d: the upstream got %s, %v", at, *got.Load(), err)
		}
	}
	_, err = use(tool.WithSession(ada, "two"), 1, "keep", `{"mail":"`+token+`"}`)
	wantError(t, err, tool.Invalid, token)
	_, err = use(tool.WithPrincipal(ada, "eve"), 1, "keep", `{"mail":"`+token+`"}`)
	wantError(t, err, tool.Invalid, token)

	// Both give tokens at the same time: none means two values.
	var work sync.WaitGroup
	for i := range 40 {
		work.Go(func() {
			mail := fmt.Sprintf("person%d@example.org", i/2)
			read, err := use(ada, i%2, "get", `{"to":"`+mail+`"}`)
			token := regexp.MustCompile(`\[EMAIL_[0-9_]+\]`).FindString(read)
			if err != nil || token == "" {
				t.Errorf("%s, %v", read, err)
				return
			}
			if out, err := w.all[1-i%2].Privacy.Arguments(ada, tool.Call{Tool: tool.ID{Upstream: "firm", Name: "keep"}, Args: json.RawMessage(`{"m":"` + token + `"}`)}); err != nil || string(out) != `{"m":"`+mail+`"}` {
				t.Errorf("%s of %s is %s elsewhere, %v", token, mail, out, err)
			}
		})
	}
	work.Wait()
	log, err := w.records[0].Log(store.PrivatePrefix+"vault", store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for e, err := range log.Read(t.Context(), nil, 0) {
		if err != nil {
			t.Fatal(err)
		}
		stored++
		if all := strings.Join(e.Key, " ") + string(e.Value); strings.Contains(all, "example.org") || strings.Contains(all, "ada") {
			t.Errorf("the servers see %q", all)
		}
	}
	if stored < 4 {
		t.Errorf("%d records", stored)
	}
}
