package httpapi

import (
	"context"
	"net/http"

	"sallyport/internal/sanitize"
)

// Processes are the processes of upstreams, for operators.
type Processes interface {
	// Restart ends the session of an upstream and starts a new one.
	Restart(ctx context.Context, id string) error
	// Stderr returns the end of its stderr, or with after the lines since; next is the position after it.
	Stderr(ctx context.Context, id, after string) (text, next string, err error)
}

// processRoutes are the routes on the processes of upstreams.
type processRoutes struct{ service Processes }

// Restarted is what POST /upstreams/restart/{upstream} gives.
type Restarted struct {
	// Upstream is the id of the upstream, which is connected again.
	Upstream string `json:"upstream"`
}

func (p processRoutes) restart(r *http.Request, _ Nothing) (Restarted, error) {
	id := r.PathValue("upstream")
	return Restarted{Upstream: sanitize.Line(id, 100)}, p.service.Restart(r.Context(), id)
}

// UpstreamLog is what GET /upstreams/log/{upstream} gives.
type UpstreamLog struct {
	// Upstream is the id of the upstream.
	Upstream string `json:"upstream"`
	// Stderr is the end of what its process wrote to stderr, at most 8 KiB, without secrets and invisible characters.
	// With after, it is the complete lines that were written since.
	Stderr string `json:"stderr"`
	// Next is the position after it, for the parameter after.
	Next string `json:"next"`
}

func (p processRoutes) log(r *http.Request) (UpstreamLog, error) {
	id := r.PathValue("upstream")
	text, next, err := p.service.Stderr(r.Context(), id, queryOf(r).text("after"))
	return UpstreamLog{Upstream: sanitize.Line(id, 100), Stderr: sanitize.Text(text, 16<<10), Next: next}, err
}
