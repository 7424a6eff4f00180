package server

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/dashboard"
	"sallyport/gateway/httpserver"
	"sallyport/internal/tool"
)

// dashboardRequest is the body of POST /dashboard/codes, which only the control socket serves.
type dashboardRequest struct {
	// Open says that a gateway without pages shall open them on a free port of this machine.
	Open bool `json:"open,omitempty"`
}

// dashboardCode is the response.
type dashboardCode struct {
	// URL logs a browser on this machine in, once and within a minute.
	URL string `json:"url"`
}

// localPages gives the addresses that open the dashboard. A gateway that browsers cannot reach, such as one over stdio, opens
// the dashboard and the API on a free port of this machine when they are first requested. They accept no anonymous requests.
type localPages struct {
	app     *app
	service *service
	// running ends when the gateway stops serving.
	running context.Context //nolint:containedctx // the pages end with the gateway, not with the request that opened them

	mu     sync.Mutex
	listed *httpListener // nil until there are pages
	work   sync.WaitGroup
}

// newLocalPages returns the pages of a gateway that listens at d, nil for none, until ctx ends.
func (a *app) newLocalPages(ctx context.Context, s *service, d *httpListener) *localPages {
	p := &localPages{app: a, service: s, running: ctx}
	if d.isReachable() {
		p.listed = d
	}
	return p
}

// withLoginCodes adds the endpoint for login codes to the API of the control socket.
func (p *localPages) withLoginCodes(api http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("POST /dashboard/codes", func(w http.ResponseWriter, r *http.Request) {
		var asked dashboardRequest
		_ = json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&asked) // an older sallyport sends {}
		d, err := p.listener(asked.Open)
		if err != nil {
			p.service.log.Error("the dashboard cannot be opened", "error", err)
		}
		if d == nil {
			api.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(dashboardCode{URL: httpserver.Site(d.listener) + "/login?code=" + d.sessions.NewCode()})
	})
	return mux
}

// listener returns the listener of the pages, nil if there are none and they shall not be opened.
func (p *localPages) listener(open bool) (*httpListener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listed != nil || !open || p.running.Err() != nil {
		return p.listed, nil
	}
	settings := p.service.cfg.HTTP
	settings.URL, settings.RequireToken, settings.OAuth, settings.Login = "", true, nil, nil
	settings.Grace = time.Second // the client that started this process waits for its end
	listener, err := httpserver.Listen(p.running, net.JoinHostPort("127.0.0.1", "0"), settings, p.service.callers.tokens)
	if err != nil {
		return nil, err
	}
	d := &httpListener{listener: listener, callers: p.service.callers}
	server := httpserver.New(listener, d.options(p.service, settings, dashboard.Endpoint{}))
	p.service.log.Info("the dashboard was opened", "address", httpserver.Site(listener))
	p.work.Go(func() {
		if err := server.Serve(p.running); err != nil {
			p.service.log.Error("the dashboard ended", "error", err)
		}
	})
	p.listed = d
	return d, nil
}

// wait waits for the end of the pages that were opened.
func (p *localPages) wait() { p.work.Wait() }

// requestPages returns an address that opens the dashboard of one of the gateways: of one that has pages, else of one that opens
// them, preferably the one that has the records.
func requestPages(ctx context.Context, c *cli.Gateways) (code dashboardCode, err error) {
	err = &tool.Error{Kind: tool.NotFound}
	gateways := c.RecordsFirst(ctx)
	for _, asked := range []dashboardRequest{{}, {Open: true}} {
		for _, gate := range gateways {
			if err = cli.DoJSON(ctx, gate, http.MethodPost, "/dashboard/codes", asked, &code); err == nil {
				return code, nil
			}
		}
	}
	return code, err
}
