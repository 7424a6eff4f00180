package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

const edgeToken = "edge-91-token-of-the-api"

// TestEgress: programs of both languages send requests to the hosts of the settings by an upstream's tools, without having the
// secret of the settings; other hosts and methods are refused, the budget holds, and each request is in the audit log.
func TestEgress(t *testing.T) {
	t.Parallel()
	server := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"method": %q, "id": 9007199254740993, "echo": %q, "sent": %q}`, r.Method, r.Header.Get("Authorization"), body)
	}))
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address.Host)
	cfg, err := config.Parse("upstreams.yaml", []byte(`upstreams:
  web:
    description: the API of orders
    egress:
      private_hosts: [{name: "localhost:`+port+`", methods: [GET, POST], header: {Authorization: "Bearer ${TOKEN}"}}]
      budget: 5
`), func(name string) (string, bool) { return edgeToken, name == "TOKEN" })
	if err != nil {
		t.Fatal(err)
	}
	data, records := t.TempDir(), store.Memory()
	defer records.Close()
	cfg.Audit = config.Default().Audit
	g := open(t, withRunsc(t, cfg), &gateway.Options{DataDir: data, Records: records})
	g.Catalog.WaitConnected(t.Context())
	ada := tool.WithPrincipal(t.Context(), "token:ada")
	run := func(language, code string) execution.Result {
		t.Helper()
		e, err := g.Executor.Execute(ada, execution.Program{Language: language, Code: strings.ReplaceAll(code, "URL", server.URL)})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	python := run("python", `from servers.web import get, send
r = get(url="URL/orders")
print(r["status"], r["body"]["method"], r["body"]["id"] + 1, r["body"]["echo"], r["headers"]["content-type"])
print(send(url="URL/orders", method="POST", json={"n": 1})["body"]["sent"])
for change in (lambda: send(url="URL/", method="DELETE"), lambda: get(url="https://evil.example/")):
    try: change()
    except Exception as e: print(e)
`)
	wantText(t, python, sandbox.OK, "200 GET 9007199254740994 [hidden] application/json", `{"n":1}`, `wrong arguments: method: expected "POST", got str "DELETE"`, `host "evil.example" is not allowed; allowed are localhost:`+port)
	wantText(t, run("typescript", `import { get } from "servers/web";
const r = await get({ url: "URL/orders" });
console.log(r.status, r.encoding, (r.body as any).method);`), sandbox.OK, "200 json GET")
	wantText(t, run("python", "import requests"), sandbox.Failed, "use get of servers.web")
	wantText(t, run("typescript", `await fetch("URL/orders")`), sandbox.Failed, "use get of servers.web")
	wantText(t, run("python", `from servers.web import get
for i in range(9): get(url="URL/orders")`), sandbox.Failed, `budget "egress of web" is used up: 5 of 5 calls today`)
	checkEgressRecords(t, data)
}

func checkEgressRecords(t *testing.T, data string) {
	t.Helper()
	made, denied := 0, 0
	for _, r := range readAudit(t, data) {
		switch {
		case r.Kind == audit.Call && r.Decision == "deny" && r.Rule == "budget egress of web":
			denied++
		case r.Kind == audit.Call && r.Tool == "web.get":
			made++
		}
		if strings.Contains(fmt.Sprint(r), edgeToken) {
			t.Errorf("a record has the secret: %+v", r)
		}
	}
	if made < 3 || denied != 1 {
		t.Errorf("the audit log has %d requests and %d refusals", made, denied)
	}
}
