package config

import (
	"slices"
	"time"

	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// Approval sets the time limits of approvals.
type Approval struct {
	// Wait is how long a program waits for an approval if its client cannot be asked. Then it is stopped, to be resumed
	// after the approval; default 30s.
	Wait time.Duration
	// Expire is how long an approval can be answered, and then how long an approval of one call is valid; default 1h.
	Expire time.Duration
}

func defaultApproval() Approval { return Approval{Wait: 30 * time.Second, Expire: time.Hour} }

func (d *decoder) approval(at path, n *yaml.Node, a *Approval) {
	d.Fields(at, n, []key{
		{"wait", scalar(d, &a.Wait, yamlstrict.Duration)},
		{"expire", scalar(d, &a.Expire, yamlstrict.Duration)},
	})
}

func (a Approval) problems(at path) []problem {
	return slices.Concat(
		between(at.To("wait"), a.Wait, 0, time.Hour),
		between(at.To("expire"), a.Expire, time.Minute, 7*24*time.Hour),
	)
}
