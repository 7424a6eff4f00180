package dashboard

import (
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
}

// toolsPerPage is how many tools are listed at once.
const toolsPerPage = 100

func (d *Dashboard) upstreams(*request) (any, error) { return d.service.Upstreams(), nil }

func (d *Dashboard) upstream(r *request) (any, error) {
	id := r.PathValue("id")
	for _, up := range d.service.Upstreams() {
		if up.ID == id {
			r.setTitle(up.ID, Crumb{"Upstreams", "/ui/upstreams"})
			return d.upstreamPage(r, up), nil
		}
	}
	return nil, &tool.Error{Kind: tool.NotFound, Message: "there is no upstream " + sanitize.Line(id, 100), Hint: "it may have been taken out of the settings"}
}

func (d *Dashboard) upstreamPage(r *request, up catalog.Upstream) UpstreamPage {
	p := UpstreamPage{Upstream: up}
	if up.State.Login {
		p.Login = "sallyport auth login " + up.Name
	}
	if !r.isOperator() { // what a process says of its machine is no business of others
		p.State.Stderr = ""
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
