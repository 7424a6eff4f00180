package gateway

import (
	"strings"

	"sallyport/gateway/catalog"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// NotReady returns the reasons why the gateway is not ready, none if it is: a connection to every upstream was attempted
// (successfully or not) or timed out, and programs can run. It may open the sandboxes.
func (g *Gateway) NotReady() []string {
	if g.Closing() {
		return []string{"it is closed"}
	}
	var missing []string
	if ids := catalog.PendingUpstreams(g.Catalog); len(ids) > 0 {
		missing = append(missing, sanitize.Line("upstreams have not been tried yet: "+strings.Join(ids, ", "), 300))
	}
	if err := g.opts.Records.Available(); err != nil {
		missing = append(missing, sanitize.Line(err.Error(), 300))
	}
	if err := g.Sandboxes.Ready(); err != nil {
		missing = append(missing, sanitize.Line(tool.AsError(err).Message, 300))
	}
	return missing
}

// Closing reports whether Close has been called.
func (g *Gateway) Closing() bool { return g.Sandboxes.Closing() || g.Catalog.Closed() }
