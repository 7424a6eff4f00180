package alerts

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/approval"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
)

// The types of events, which messages have as their type.
const (
	typeApproval    = "approval.pending"
	typeHeld        = "tools.held"
	typeUnavailable = "upstream.unavailable"
	typeAvailable   = "upstream.available"
	typeBudget      = "budget.used_up"
	typeTest        = "test"
)

// kinds has for each type the word in the settings, the dashboard's page, and what several are called.
var kinds = map[string]struct{ what, page, several string }{
	typeApproval:    {config.OnApproval, "/ui/approvals", "%d approvals are pending"},
	typeHeld:        {config.OnQuarantine, "/ui/quarantine", "%d upstreams have tools that are held for review"},
	typeUnavailable: {config.OnUpstream, "/ui/upstreams", "%d upstreams are not available"},
	typeAvailable:   {config.OnUpstream, "/ui/upstreams", "%d upstreams are available again"},
	typeBudget:      {config.OnBudget, "/ui/savings", "%d budgets are used up"},
	typeTest:        {"", "/", "%d tests"},
}

// Event is the cause of an alert. All texts are sanitized and bounded.
type Event struct {
	typ string
	// Text says what happened, in one line.
	Text string    `json:"text"`
	Time time.Time `json:"time"`
	// Approval is the id of an approval, Tool what is to be called. Arguments have tokens in place of personal data.
	Approval  string `json:"approval,omitempty"`
	Tool      string `json:"tool,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	// Rule is the rule that requires the approval, Reason why.
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Principal is the caller, Execution the id of the program, Title its title.
	Principal string `json:"principal,omitempty"`
	Execution string `json:"execution,omitempty"`
	Title     string `json:"title,omitempty"`
	// Expires is when the approval can no longer be answered, Reply the address for a signed answer.
	Expires time.Time `json:"expires,omitzero"`
	Reply   string    `json:"reply,omitempty"`
	// Upstream is the id of an upstream, Problem why it is not available.
	Upstream string `json:"upstream,omitempty"`
	Problem  string `json:"problem,omitempty"`
	// Tools are tools that are held for review, with the reason.
	Tools []string `json:"tools,omitempty"`
	// Budget is the name of a budget, Resource what is used up.
	Budget   string `json:"budget,omitempty"`
	Resource string `json:"resource,omitempty"`
}

// what is the word of its type in the settings.
func (e Event) what() string { return kinds[e.typ].what }

func approvalEvent(q approval.Approval) Event {
	return Event{
		typ: typeApproval, Time: q.Asked, Approval: q.ID, Tool: q.Tool, Arguments: sanitize.Line(q.Arguments, 1500), Rule: q.Rule, Reason: q.Reason,
		Principal: sanitize.Line(q.Principal, 200), Execution: q.Execution, Expires: q.Expires,
	}
}

// approvalText says what waits for a person.
func approvalText(e Event) string {
	text := fmt.Sprintf("%s needs approval, for %s", e.Tool, cmp.Or(e.Principal, "a local client"))
	if e.Title != "" {
		text += fmt.Sprintf(", in the program %q", e.Title)
	}
	return text
}

func budgetEvent(name, principal, resource string) Event {
	who := sanitize.Line(principal, 200)
	return Event{
		typ: typeBudget, Time: time.Now().UTC(), Budget: name, Principal: who, Resource: resource,
		Text: fmt.Sprintf("budget %q is used up for today (%s), for %s", name, resource, cmp.Or(who, "local clients")),
	}
}

func heldEvent(upstream string, tools []Held) Event {
	e := Event{typ: typeHeld, Time: time.Now().UTC(), Upstream: upstream}
	for _, t := range tools[:min(len(tools), maxTools)] {
		e.Tools = append(e.Tools, sanitize.Line(t.Tool, 200)+" ("+t.Reason+")")
	}
	e.Text = sanitize.Line(fmt.Sprintf("%d tools of upstream %s are held for review: %s", len(tools), upstream, strings.Join(e.Tools, ", ")), 600)
	return e
}

// maxTools bounds the tools in one event.
const maxTools = 20

func upstreamEvent(typ string, u Upstream, since time.Time) Event {
	e := Event{typ: typ, Time: time.Now().UTC(), Upstream: u.ID, Problem: sanitize.Line(u.Problem, 300)}
	took := time.Since(since).Round(time.Second)
	if e.Text = fmt.Sprintf("upstream %s is available again, after %s", u.ID, took); typ == typeUnavailable {
		e.Text = fmt.Sprintf("upstream %s is not available since %s: %s", u.ID, took, e.Problem)
	}
	return e
}

// clip returns the beginning of a text, of at most n bytes.
func clip(text string, n int) string { return text[:min(len(text), n)] }
