// Package policy decides what becomes of a call of a tool, by rules that an operator wrote: what is allowed, denied,
// asked about or limited, and where data may not flow. Its main type is [Policy], compiled from [Settings] by [New];
// [Policy.Decide] is the decision. It knows nothing of upstreams or sandboxes: a [Call] has all that it looks at.
package policy

import (
	"encoding/json"
	"time"

	"sallyport/internal/tool"
)

// Action is what becomes of a call.
type Action string

// The actions. Limit is one of rules only.
const (
	Allow Action = "allow"
	Deny  Action = "deny"
	Ask   Action = "ask"
	Limit Action = "limit"
)

// Flow is what becomes of a call that could carry private data out on someone else's behalf.
type Flow string

// The values of Flow.
const (
	FlowAsk  Flow = "ask"
	FlowDeny Flow = "deny"
	FlowOff  Flow = "off"
)

// The labels that data-flow rules know. Others have no meaning but the one that rules give them.
const (
	// Private: results have what not everybody may know.
	Private = "private"
	// Untrusted: results have text that anybody may have written.
	Untrusted = "untrusted"
	// External: what it is given can be seen outside.
	External = "external"
)

// Settings are the rules as they were written. The zero value allows every call.
type Settings struct {
	// On says that there are rules; without it Default and Rules do not count.
	On bool
	// Default is what becomes of a call that no rule decides and whose tool does not say that it only reads; "" is ask.
	Default Action
	// Rules are looked at in order; the first allow, deny or ask that matches decides.
	Rules []Rule
	// Flow is what becomes of a call to what is external after private and untrusted data was read; "" is ask.
	Flow Flow
	// Tests are example calls, for [Policy.Test].
	Tests []Test
}

// Rule is one rule.
type Rule struct {
	// Name is told to people and models; "" is "rule N", counted from 1.
	Name string
	// Tools are globs of upstream.tool; none is all. A method that is no tool is upstream.resources.read and the like.
	Tools []string
	// When is an expression in CEL that must be true; "" is.
	When string
	Then Action
	// Message is told to the model that is refused, with the rule's name.
	Message string
	// Limit is for Then limit.
	Limit *Limits
}

// Limits say how much there may be of something.
type Limits struct {
	// Calls is how many calls, or how much their cost comes to.
	Calls int
	// Per is minute, hour, day, execution or session.
	Per string
	// By is who has a count of their own: principal, session, execution or everyone; "" is the execution or the
	// session where Per is that, else the principal.
	By string
	// Cost is an expression for what one call counts, a whole number; "" is 1.
	Cost string
}

// Test is an example call with what must become of it.
type Test struct {
	// Call is a tool's id, Args its arguments, a JSON object; nil is none.
	Call string
	Args json.RawMessage
	// Principal, Remote, Annotations, Read and Calls are what rules look at, see [Call].
	Principal   string
	Remote      bool
	Annotations map[string]bool
	// Labels are the tool's; nil: those of the settings.
	Labels []string
	Read   []string
	Calls  map[string]int64
	// Expect is what must become of it, Rule which rule must decide; "" is any.
	Expect Action
	Rule   string
	// Line is where it stands in the settings.
	Line int
}

// Call is what a decision is made about. What is in it may come from anywhere.
type Call struct {
	Tool        tool.ID
	Annotations tool.Annotations
	// Args returns the arguments, decoded by [sallyport/internal/expr.Decode], as the upstream would get them. It is called at most once, if a rule looks at them.
	Args func() (any, error)
	// Principal and Session are who asks, Execution is "" for what no program calls; Remote is over HTTP.
	Principal, Session, Execution string
	Remote                        bool
	// Labels are those of the tool, Read those of all that was read so far.
	Labels, Read []string
	// Calls returns how often each tool and each upstream was called in the execution so far; nil is never.
	Calls func() map[string]int64
	Time  time.Time
}

// name is what globs are compared with.
func (c *Call) name() string { return nameOf(c.Tool) }

// ReadsOnly reports whether it only reads, by the word of the upstream or as it asks for no tool: resources and prompts are read.
func (c *Call) ReadsOnly() bool {
	return c.Tool.Method() != "tools/call" || c.Annotations.ReadOnly != nil && *c.Annotations.ReadOnly
}

// Decision says what becomes of a call.
type Decision struct {
	Action Action
	// Rule is the name of the rule that decided, "default", "read-only", "flow", or "" where there are no rules.
	Rule string
	// Reason is for people; it has no arguments.
	Reason string
	// Message is the operator's, for a model that is refused; may be "".
	Message string
	// Limited says that it is denied as a limit is used up.
	Limited bool
}
