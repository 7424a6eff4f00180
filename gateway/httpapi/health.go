package httpapi

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"sallyport/internal/tool"
)

// Health is what GET /health gives. Who may not read gets Status and Version.
type Health struct {
	// Status is "ok", or "draining" where the process is about to end: who is not well does not answer.
	Status string `json:"status"`
	// Version is that of the gateway.
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

// UpstreamHealth is how one upstream stands.
type UpstreamHealth struct {
	ID string `json:"id"`
	// Status is idle, connecting, ready, failed and so on.
	Status string `json:"status"`
	// Reason says why it is not available, nothing where a call reaches it or starts it.
	Reason string `json:"reason,omitempty"`
	// Tools is how many are known, Held how many more are quarantined.
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
	h.UptimeMS, h.Kept, h.Workflows = max(1, time.Since(a.begun).Milliseconds()), a.opts.Kept, a.opts.Workflows != nil
	for _, up := range a.verbs.Upstreams() {
		h.Upstreams = append(h.Upstreams, UpstreamHealth{ID: up.ID, Status: string(up.State.Status), Reason: up.Problem(), Tools: up.State.Tools, Held: up.Held})
	}
	return h, nil
}

// Readiness is what GET /readyz gives where the gateway can do its work.
type Readiness struct {
	// Status is "ready".
	Status string `json:"status"`
	// Version is that of the gateway.
	Version string `json:"version"`
}

// errNotReady is in what /readyz answers until the gateway can do its work, and again when it is about to end.
var errNotReady = errors.New("not ready")

func (a *api) ready(r *http.Request) (Readiness, error) {
	missing := a.verbs.Missing()
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
