package gateway_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// pager is a receiver of alerts that answers each approval with its signature.
type pager struct {
	key      []byte
	gate     string // where it answers
	messages chan pagerMessage
	statuses chan int
}

type pagerMessage struct {
	Type string
	Data struct {
		Events []struct{ Approval, Tool, Title, Arguments, Reply, Budget string }
	}
}

func (p *pager) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, p.key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (p *pager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h := r.Header
	var m pagerMessage
	if json.Unmarshal(body, &m) != nil || h.Get("webhook-signature") != p.sign(h.Get("webhook-id"), h.Get("webhook-timestamp"), body) {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	for _, e := range m.Data.Events {
		if e.Approval != "" {
			go p.allow(e.Approval)
		}
	}
	p.messages <- m
}

func (p *pager) allow(id string) {
	body := fmt.Appendf(nil, `{"approval":%q,"decision":"allow"}`, id)
	r, _ := http.NewRequest(http.MethodPost, p.gate+"/api/approvals/"+id+"/reply", bytes.NewReader(body))
	now := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("webhook-id", "answer")
	r.Header.Set("webhook-timestamp", now)
	r.Header.Set("webhook-signature", p.sign("answer", now, body))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		p.statuses <- 0
		return
	}
	_ = response.Body.Close()
	p.statuses <- response.StatusCode
}

// TestAlerts: a program that needs an approval continues with the signed answer of a receiver of alerts, which is in the audit
// log, and a budget that is used up is sent.
func TestAlerts(t *testing.T) {
	t.Parallel()
	p := &pager{key: []byte("a key that both know"), messages: make(chan pagerMessage, 9), statuses: make(chan int, 9)}
	data, up := t.TempDir(), newSite(t, notes)
	cfg := withRunsc(t, settings(map[string]*site{"notes": up}))
	cfg.Audit = config.Default().Audit
	cfg.Policy = policy.Settings{On: true, Default: policy.Ask}
	cfg.Approval.Wait = time.Minute
	cfg.Budgets = []config.Budget{{Name: "day", Calls: 1}}
	cfg.Alerts = []config.Alert{{Name: "pager", URL: config.Secret(tlstest.NewServer(t, p).URL), Secret: config.Secret(p.key)}}
	g := open(t, cfg, &gateway.Options{DataDir: data, Site: "https://gate.example"})
	mux := http.NewServeMux()
	mux.Handle("POST /api/approvals/{id}/reply", g.Alerts)
	gate := httptest.NewServer(mux)
	defer gate.Close()
	p.gate = gate.URL
	g.Catalog.WaitConnected(t.Context())

	e, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), "token:ada"), execution.Program{Code: `# write it down for ada@example.com
from servers.notes import create_note
print(create_note(title="a"))
try: create_note(title="b")
except Exception as e: print(e.kind)`})
	if err != nil || e.Failed() || !strings.Contains(e.Text(), "ok\nlimit") {
		t.Fatalf("%v, %s", err, e.Text())
	}
	if status := <-p.statuses; status != http.StatusOK {
		t.Errorf("the answer has status %d", status)
	}
	asked, limit := <-p.messages, <-p.messages
	if one := asked.Data.Events[0]; one.Tool != "notes.create_note" || one.Title != "write it down for [EMAIL]" || one.Reply == "" {
		t.Errorf("the alert is %+v", asked)
	}
	if limit.Type != "budget.used_up" || limit.Data.Events[0].Budget != "day" {
		t.Errorf("the alert is %+v", limit)
	}
	answered := 0
	for _, r := range readAudit(t, data) {
		if r.Kind == audit.ApprovalAnswered && r.By == "alert pager" && r.Outcome == "allowed:once" && r.Principal == "token:ada" {
			answered++
		}
	}
	if answered != 1 {
		t.Errorf("the audit log has %d answers", answered)
	}
}
