package gateway

import (
	"strings"
	"time"

	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

// Missing says what keeps the gateway from its work; nothing if it is ready: every upstream has been tried, however that
// went, or the time for that is over, and programs can be run. It may open the sandboxes.
func (g *Gateway) Missing() []string {
	if g.Closing() {
		return []string{"it is closed"}
	}
	var missing []string
	if ids := g.catalog.untried(); len(ids) > 0 && time.Now().Before(*g.patient.Load()) {
		missing = append(missing, plain.Line("upstreams have not been tried yet: "+strings.Join(ids, ", "), 300))
	}
	_, release, err := g.runner.borrow()
	if err != nil {
		return append(missing, plain.Line(tool.AsError(err).Message, 300))
	}
	release()
	return missing
}

// untried are the upstreams that no snapshot shows yet.
func (c *catalog) untried() (ids []string) {
	for _, m := range c.unseen() {
		ids = append(ids, m.id)
	}
	return ids
}

func (c *catalog) unseen() (all []*member) {
	for _, m := range c.roster.Load().members {
		select {
		case <-m.shown:
		case <-m.ended:
		default:
			all = append(all, m)
		}
	}
	return all
}
