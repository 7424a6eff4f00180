package catalog

import (
	"maps"
	"slices"
	"strings"

	"sallyport/gateway/upstream"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Upstream is the status of one upstream.
type Upstream struct {
	ID          string
	Name        string
	Description string
	State       upstream.State
	// Held is how many of its tools are quarantined and wait for a review. They do not count as tools, and rejected ones nowhere.
	Held int
	// Known says that its offer is known, from this run or an earlier one.
	Known bool
	// Arriving says that searches do not include its offer yet.
	Arriving bool
	// Cached says that its offer is from an earlier run: it was not connected in this one.
	Cached bool
}

// Problem returns one line that says why an upstream is not available, "" if it is.
func (u Upstream) Problem() string {
	switch {
	case u.Arriving && u.State.Error == "" && u.State.Status != upstream.Closed:
	case u.State.Status == upstream.Ready, u.State.Error == "" && u.Known && u.State.Status != upstream.Closed:
		return "" // a call starts it
	case u.State.Error != "":
		why := strings.TrimPrefix(u.State.Error, "cannot connect to upstream "+u.ID+": ")
		return sanitize.Line(strings.TrimPrefix(why, "upstream "+u.ID+" needs authorization: "), 200)
	case u.State.Status == upstream.Closed:
		return "closed"
	}
	return StillConnecting
}

// StillConnecting is the problem of an upstream before its first answer, and until searches include its offer.
const StillConnecting = "still connecting"

// Works reports whether it is connected, and its offer known, which is a moment later.
func (u Upstream) Works() bool { return u.State.Status == upstream.Ready && u.Known }

// Upstreams returns the state of every upstream that is not disabled, in the order of the settings.
func (c *Catalog) Upstreams() []Upstream {
	members := c.roster.Load().members
	ups := make([]Upstream, len(members))
	for i, m := range members {
		ups[i] = m.status()
	}
	return ups
}

func enabledUpstreams(cfg *config.Config) []config.Upstream {
	var ups []config.Upstream
	for _, up := range cfg.Upstreams {
		if !up.Disabled {
			ups = append(ups, up)
		}
	}
	return ups
}

// Tools returns all tools known now, sorted by id.
func (c *Catalog) Tools() []tool.Tool { return slices.Clone(c.Snapshot().Tools) }

// Tree returns the files of the servers/ tree by their slash-separated paths.
func (c *Catalog) Tree() map[string][]byte { return maps.Clone(c.Snapshot().Files()) }
