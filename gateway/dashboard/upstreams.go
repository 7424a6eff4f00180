package dashboard

import (
	"context"
	"errors"
	"net/url"
	"time"

	"sallyport/gateway/catalog"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// UpstreamPage is what the page of one upstream shows.
type UpstreamPage struct {
	catalog.Upstream
	Tools []tool.Tool
	Pager Pager
	// Login is the command to log in, "" where no login is needed.
	Login string
	// Isolation is nil for one that is not isolated, and for a caller who is no operator.
	Isolation *IsolationView
	// MayEdit says that the caller may change its settings here.
	MayEdit bool
	// MayRestart says that the caller may restart it.
	MayRestart bool
}

// UpstreamsPage is the list of the upstreams.
type UpstreamsPage struct {
	List []catalog.Upstream
	// Disabled are the names of those that the settings turn off, for callers who may turn them on.
	Disabled []string
	// MayAdd says that the caller may add one here.
	MayAdd bool
}

const upstreamsPath = "/ui/upstreams"

// toolsPerPage is how many tools are listed at once.
const toolsPerPage = 100

func (d *Dashboard) upstreams(r *request) (any, error) {
	p := UpstreamsPage{List: d.service.Upstreams(), MayAdd: d.opts.Adder != nil && (editPages{d}).mayEdit(r)}
	if d.opts.Disabled != nil && (editPages{d}).mayEdit(r) {
		p.Disabled = d.opts.Disabled()
	}
	return p, nil
}

func (d *Dashboard) upstream(r *request) (any, error) {
	id := r.PathValue("id")
	for _, up := range d.service.Upstreams() {
		if up.ID == id {
			r.setTitle(up.ID, Crumb{"Upstreams", upstreamsPath})
			return d.upstreamPage(r, up), nil
		}
	}
	return nil, &tool.Error{Kind: tool.NotFound, Message: "there is no upstream " + sanitize.Line(id, 100), Hint: "it may have been taken out of the settings"}
}

func (d *Dashboard) upstreamPage(r *request, up catalog.Upstream) UpstreamPage {
	p := UpstreamPage{Upstream: up, MayEdit: editPages{d}.mayEdit(r), MayRestart: r.isOperator()}
	if up.State.Login {
		p.Login = "sallyport auth login " + up.Name
	}
	if !r.isOperator() { // what a process says of its machine is no business of others
		p.State.Stderr = ""
	} else if d.opts.Isolation != nil {
		p.Isolation = p.isolationOf(d.opts.Isolation(up.ID))
	}
	var all []tool.Tool
	for _, t := range d.service.Tools() {
		if t.ID.Upstream == up.ID {
			all = append(all, t)
		}
	}
	p.Tools, p.Pager = paginate(r, all, toolsPerPage)
	return p
}

// restartWait is how long a form waits for the new session. A longer connection goes on without it.
const restartWait = 10 * time.Second

// processPages act on the processes of upstreams.
type processPages struct{ *Dashboard }

// restart ends the session of an upstream and starts a new one.
func (d processPages) restart(r *request) (string, error) {
	ctx, cancel := context.WithTimeout(r.Context(), restartWait)
	defer cancel()
	id := r.PathValue("id")
	err := d.service.Restart(ctx, id)
	switch e := tool.AsError(err); {
	case err == nil:
		r.say("Restarted: " + id + ".")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.say("Restarted: " + id + " is still connecting.")
	case e.Kind == tool.NotFound || e.Kind == tool.Denied:
		return "", err
	default:
		r.warn("Restarted, but not connected: " + sanitize.Line(e.Message, 300))
	}
	return upstreamsPath + "/" + url.PathEscape(id), nil
}

// restartPath is the form that restarts an upstream.
func restartPath(id string) string { return upstreamsPath + "/" + url.PathEscape(id) + "/restart" }
