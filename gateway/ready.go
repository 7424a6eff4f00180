package gateway

import (
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Missing says what keeps the gateway from its work; nothing if it is ready: every upstream has been tried, however that
// went, or the time for that is over, and programs can be run. It may open the sandboxes.
func (g *Gateway) Missing() []string {
	if g.Closing() {
		return []string{"it is closed"}
	}
	var missing []string
	if ids := g.Catalog.Awaited(); len(ids) > 0 {
		missing = append(missing, sanitize.Line("upstreams have not been tried yet: "+strings.Join(ids, ", "), 300))
	}
	if err := g.Sandboxes.Ready(); err != nil {
		missing = append(missing, sanitize.Line(tool.AsError(err).Message, 300))
	}
	return missing
}

// Closing reports whether Close has been called.
func (g *Gateway) Closing() bool { return g.Sandboxes.Closing() || g.Catalog.Closed() }
