package httpapi

import (
	"net/http"
	"time"
)

// Health is what GET /health gives.
type Health struct {
	// Status is "ok": who is not does not answer.
	Status string `json:"status"`
	// Version is that of the gateway.
	Version string `json:"version"`
	// UptimeMS is in milliseconds.
	UptimeMS int64 `json:"uptime_ms"`
	// Kept says that records outlive the process.
	Kept bool `json:"kept"`
	// Workflows says that it runs workflows.
	Workflows bool `json:"workflows"`
	// Upstreams are in the order of the settings.
	Upstreams []UpstreamHealth `json:"upstreams"`
}

// UpstreamHealth is how one upstream stands.
type UpstreamHealth struct {
	ID string `json:"id"`
	// Status is idle, connecting, ready, failed and so on.
	Status string `json:"status"`
}

func (a *api) health(*http.Request) (Health, error) {
	h := Health{Status: "ok", Version: a.opts.Version, UptimeMS: time.Since(a.begun).Milliseconds(), Kept: a.opts.Kept, Workflows: a.opts.Workflows != nil, Upstreams: []UpstreamHealth{}}
	for _, up := range a.verbs.Upstreams() {
		h.Upstreams = append(h.Upstreams, UpstreamHealth{ID: up.ID, Status: string(up.State.Status)})
	}
	return h, nil
}
