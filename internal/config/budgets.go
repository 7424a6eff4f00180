package config

import (
	"cmp"
	"fmt"
	glob "path"
	"slices"
	"time"

	"gopkg.in/yaml.v3"

	"sallyport/internal/policy"
	"sallyport/internal/yamlstrict"
)

// Budget limits what principals use in a day. Each principal that it applies to has its own count, unless it is shared. At
// least one of Calls, Programs, CPU and Money is set.
type Budget struct {
	// Name is shown to people and models; default "budget N", counted from 1.
	Name string
	// Principals are globs of the principals that it applies to, as in the audit log; of a token, the name is enough. Default
	// all, or none if there are groups.
	Principals []string
	// Groups are groups of an OpenID provider: it applies to their members.
	Groups []string
	// Tools are globs of UPSTREAM.TOOL: only calls of these tools count, and only calls can be bound. Default all.
	Tools []string
	// Calls bounds calls of tools and methods of upstreams; default no bound.
	Calls int
	// Programs bounds programs; default no bound.
	Programs int
	// CPU bounds the processor time of programs; default no bound.
	CPU time.Duration
	// Money bounds the price of the models that Sallyport calls for tasks, in the currency of models.NAME.price; default no
	// bound.
	Money float64
	// Shared has one count for all principals that it applies to; default false.
	Shared bool
	// Per is the period, a day in UTC; default day.
	Per string
}

// PerDay is the period of a budget.
const PerDay = "day"

// budgetDecoder decodes an entry of the key budgets.
type budgetDecoder struct{ *decoder }

func (d budgetDecoder) budget(at path, n *yaml.Node, b *Budget) {
	b.Per = PerDay
	seen := d.Fields(at, n, []key{
		{"name", d.Text(&b.Name)},
		{"principals", d.Texts(&b.Principals)},
		{"groups", d.Texts(&b.Groups)},
		{"tools", d.Texts(&b.Tools)},
		{"calls", scalar(d.decoder, &b.Calls, yamlstrict.Count)},
		{"programs", scalar(d.decoder, &b.Programs, yamlstrict.Count)},
		{"cpu", scalar(d.decoder, &b.CPU, yamlstrict.Duration)},
		{"money", scalar(d.decoder, &b.Money, parseAmount)},
		{"shared", scalar(d.decoder, &b.Shared, yamlstrict.Bool)},
		{"per", d.OneOf(&b.Per, PerDay)},
	})
	for name, zero := range map[string]bool{"calls": b.Calls == 0, "programs": b.Programs == 0, "cpu": b.CPU == 0, "money": b.Money == 0} {
		if seen[name] && zero && !d.Bad(at.To(name)) {
			d.Fail(at.To(name), yamlstrict.ValueOf(n, name), "%s must be more than 0; leave it out for no bound", name)
		}
	}
}

// nameEntries gives the budgets and alerts without a name one.
func (c *Config) nameEntries() {
	for i := range c.Budgets {
		c.Budgets[i].Name = cmp.Or(c.Budgets[i].Name, fmt.Sprintf("budget %d", i+1))
	}
	for i := range c.Alerts {
		c.Alerts[i].Name = cmp.Or(c.Alerts[i].Name, fmt.Sprintf("alert %d", i+1))
	}
}

// maxBudgets bounds the budgets, as all of them are searched for each call.
const maxBudgets = 200

func (c *Config) budgetProblems(at path) (all []problem) {
	names := map[string]bool{}
	if len(c.Budgets) > maxBudgets {
		all = append(all, problem{at: at, onKey: true, message: fmt.Sprintf("there are more than %d budgets", maxBudgets)})
	}
	for i, b := range c.Budgets {
		under := at.Item(i)
		if names[b.Name] && b.Name != "" {
			all = append(all, problem{at: under.To("name"), fallback: under, message: fmt.Sprintf("there is another budget %.60q", b.Name)})
		}
		names[b.Name] = true
		all = append(all, b.problems(under)...)
	}
	return all
}

func (b Budget) problems(at path) (all []problem) {
	if b.Calls == 0 && b.Programs == 0 && b.CPU == 0 && b.Money == 0 {
		all = append(all, problem{at: at, needs: []path{at.Unknown(), at.To("calls"), at.To("programs"), at.To("cpu"), at.To("money")},
			message: "a budget needs one of calls, programs, cpu and money"})
	}
	if len(b.Tools) > 0 && (b.Programs > 0 || b.CPU > 0 || b.Money > 0) {
		all = append(all, problem{at: at.To("tools"), onKey: true, message: `a budget with "tools" bounds calls only; programs, cpu and money need one of their own`})
	}
	for i, text := range b.Tools {
		if wrong := policy.CheckGlob(text); wrong != "" {
			all = append(all, problem{at: at.To("tools").Item(i), message: wrong})
		}
	}
	for i, pattern := range b.Principals {
		if _, err := glob.Match(pattern, ""); err != nil || pattern == "" {
			all = append(all, problem{at: at.To("principals").Item(i), message: `this is not a glob of principals, such as "token:ci-*"`})
		}
	}
	return slices.Concat(all,
		between(at.To("calls"), b.Calls, 0, 1_000_000_000),
		between(at.To("programs"), b.Programs, 0, 1_000_000_000),
		between(at.To("cpu"), b.CPU, 0, 100*365*24*time.Hour),
		moneyProblems(at.To("money"), b.Money),
		textProblems(at.To("name"), b.Name),
	)
}

func moneyProblems(at path, money float64) []problem {
	if money >= 0 && money <= 1e9 {
		return nil
	}
	return []problem{{at: at, message: "money must be from 0 to 1000000000"}}
}

// textProblems checks a name that models read.
func textProblems(at path, name string) []problem {
	if len(name) <= 60 && !slices.ContainsFunc([]rune(name), func(r rune) bool { return r < ' ' || r == '"' }) {
		return nil
	}
	return []problem{{at: at, message: `a name is one line of at most 60 bytes without "`}}
}
