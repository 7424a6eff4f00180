package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sallyport/gateway/cluster"
	"sallyport/gateway/dashboard"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// site is the cluster of the house.
type site struct{ told *[]string }

func (site) Report(context.Context) (cluster.Members, error) {
	return cluster.Members{
		Gateways: []cluster.Gateway{
			{ID: "g-1", Self: true, Host: "north", PID: 7, Version: "1.2.3", State: cluster.Alive, Since: noon, Beaten: noon, Load: store.Load{Running: 2, Waiting: 5, Seats: 8}},
			{ID: evil, Host: evil, Version: evil, State: cluster.Lost, Since: noon, Beaten: noon},
		},
		Workers: []cluster.Worker{
			{Name: "w1", Instance: "i-1", Version: "1.2.3", State: cluster.Alive, Since: noon, Seats: 16, Busy: 3, Labels: map[string]string{"gpu": "yes"}},
			{Name: "w2", Instance: "i-2", Version: "1.2.3", State: cluster.Drained, Since: noon, Seats: 16, Lacks: []string{"python", "region=eu"}},
			{Name: evil, Instance: evil, Version: evil, State: cluster.Draining, Busy: 1, Labels: map[string]string{evil: evil}, Lacks: []string{evil}},
		},
		Servers: []cluster.Server{
			{Name: "nats-0", Connected: true, State: cluster.Alive, Streams: 40, Leads: 13},
			{Name: "nats-1", State: cluster.Behind, Streams: 40, Behind: 3, Lag: 17},
			{Name: evil, State: cluster.Lost},
		},
		Problem: evil,
	}, nil
}

func (s site) Drain(_ context.Context, worker string) error { return s.tell("drain ", worker) }

func (s site) Resume(_ context.Context, worker string) error { return s.tell("resume ", worker) }

func (s site) tell(order, worker string) error {
	*s.told = append(*s.told, order+worker)
	if worker == "w9" {
		return &tool.Error{Kind: tool.NotFound, Message: `no worker "w9" has joined`, Hint: "workers that have: w1, w2"}
	}
	return nil
}

// clusterPagesOf are the pages of this file, with what must be on each for an operator.
var clusterPagesOf = map[string][]string{
	"/ui/cluster": {
		"north", "(this one)", "process 7", "2 of 8 run, 5 wait", "alive", "lost", "3 of 16", "gpu=yes", "lacks python, region=eu",
		"nats-0", "(connected)", "behind", "17 records in 3 streams",
		`<form method="post" action="/ui/cluster/workers/w1"><button name="do" value="drain"`, `<form method="post" action="/ui/cluster/workers/w2"><button name="do" value="resume"`,
	},
}

// TestClusterOrders: operators drain and resume workers, from this site only.
func TestClusterOrders(t *testing.T) {
	for _, test := range []struct {
		who, worker, do string
		headers         []string
		status          int
		told            string
	}{
		{"op", "w1", "drain", nil, 303, "drain w1"},
		{"token", "w1", "resume", nil, 303, "resume w1"},
		{"op", "w9", "drain", nil, 404, "drain w9"},
		{"op", "w1", "stop", nil, 400, ""},
		{"op", "w1", "drain", []string{"Sec-Fetch-Site: cross-site"}, 403, ""},
		{"ada", "w1", "drain", nil, 403, ""},
		{"reader", "w1", "drain", nil, 403, ""},
	} {
		var told []string
		got := ask(t, house{told: &told}, test.who, "/ui/cluster/workers/"+test.worker, url.Values{"do": {test.do}}, test.headers...)
		if got.Code != test.status || strings.Join(told, ";") != test.told {
			t.Errorf("%s %s %s: %d, %q", test.who, test.do, test.worker, got.Code, told)
		}
		if test.status == http.StatusSeeOther && got.Header().Get("Location") != "/ui/cluster" {
			t.Errorf("then: %q", got.Header().Get("Location"))
		}
	}
}

// TestNoCluster: a gateway without a cluster has no page about one.
func TestNoCluster(t *testing.T) {
	d := dashboard.New(house{}, nil)
	if page := send(t, d, "op", "/", nil); page.Code != 200 || strings.Contains(page.Body.String(), "Cluster") {
		t.Errorf("%d %s", page.Code, page.Body)
	}
	if page := send(t, d, "op", "/ui/cluster", nil); page.Code != 404 {
		t.Error(page.Code)
	}
}
