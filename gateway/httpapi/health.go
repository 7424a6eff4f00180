package httpapi

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"sallyport/internal/tool"
)

// Health is what GET /health gives. Callers without scope read get Status and Version only.
type Health struct {
	// Status is "ok", or "draining" while the process is shutting down.
	Status string `json:"status"`
	// Version is the version of the gateway.
	Version string `json:"version"`
	// UptimeMS is in milliseconds.
	UptimeMS int64 `json:"uptime_ms,omitempty"`
	// Kept says that records outlive the process.
	Kept bool `json:"kept"`
	// Workflows says that it runs workflows.
	Workflows bool `json:"workflows"`
	// Upstreams are in the order of the settings.
	Upstreams []UpstreamHealth `json:"upstreams,omitempty"`
}

// UpstreamHealth is the state of one upstream.
type UpstreamHealth struct {
	ID string `json:"id"`
	// Status is idle, connecting, ready, failed and so on.
	Status string `json:"status"`
	// Reason says why it is not available; omitted if a call reaches or starts it.
	Reason string `json:"reason,omitempty"`
	// Tools is the number of known tools, Held that of further ones that wait for a review.
	Tools int `json:"tools"`
	Held  int `json:"held,omitempty"`
}

func (a *api) health(r *http.Request) (Health, error) {
	h := Health{Status: "ok", Version: a.opts.Version}
	if a.opts.Draining() {
		h.Status = "draining"
	}
	if !tool.May(r.Context(), tool.ScopeRead) {
		return h, nil
	}
	h.UptimeMS, h.Kept, h.Workflows = max(1, time.Since(a.started).Milliseconds()), a.opts.Kept, a.opts.Workflows != nil
	for _, up := range a.service.Upstreams() {
		h.Upstreams = append(h.Upstreams, UpstreamHealth{ID: up.ID, Status: string(up.State.Status), Reason: up.Problem(), Tools: up.State.Tools, Held: up.Held})
	}
	return h, nil
}

// Readiness is what GET /readyz gives if the gateway is ready.
type Readiness struct {
	// Status is "ready".
	Status string `json:"status"`
	// Version is that of the gateway.
	Version string `json:"version"`
}

// errNotReady is wrapped in the error of /readyz before the gateway is ready and during shutdown.
var errNotReady = errors.New("not ready")

func (a *api) ready(r *http.Request) (Readiness, error) {
	missing := a.service.NotReady()
	if a.opts.Draining() {
		missing = append(missing, "it is about to end")
	}
	if len(missing) == 0 {
		return Readiness{Status: "ready", Version: a.opts.Version}, nil
	}
	err := &tool.Error{Kind: tool.Failed, Message: "the gateway is not ready", Err: errNotReady}
	if tool.May(r.Context(), tool.ScopeRead) {
		err.Message += ": " + strings.Join(missing, "; ")
	}
	return Readiness{}, err
}
