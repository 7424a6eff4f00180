// Package policy decides about tool calls, by rules that an operator wrote: which are allowed, denied, held for
// approval or limited, and where data may not flow. Its main type is [Policy], compiled from [Settings] by [New];
// [Policy.Decide] makes the decision. It does not depend on upstreams or sandboxes: a [Call] has all the input.
package policy

import (
	"encoding/json"
	"errors"
	"time"

	"sallyport/internal/tool"
)

// Action is the outcome of a decision.
type Action string

// The actions. Limit occurs in rules only.
const (
	Allow Action = "allow"
	Deny  Action = "deny"
	Ask   Action = "ask"
	Limit Action = "limit"
)

// Flow is the action for a call that could leak private data on behalf of an untrusted source.
type Flow string

// The values of Flow.
const (
	FlowAsk  Flow = "ask"
	FlowDeny Flow = "deny"
	FlowOff  Flow = "off"
)

// The labels that data-flow rules use. Others have only the meaning that rules give them.
const (
	// Private: results have confidential data.
	Private = "private"
	// Untrusted: results have text that anybody may have written.
	Untrusted = "untrusted"
	// External: arguments can be seen by third parties.
	External = "external"
)

// Settings are the uncompiled rules. The zero value allows every call.
type Settings struct {
	// On enables the rules; without it Default and Rules are ignored.
	On bool
	// Default is the action for a call that no rule decides, unless its tool is declared read-only; default ask.
	Default Action
	// Rules are evaluated in order; the first allow, deny or ask that matches decides.
	Rules []Rule
	// Flow is the action for a call to an external tool after private and untrusted data was read; default ask.
	Flow Flow
	// Isolate is a CEL expression; a program for which it is true runs in a sandbox that no other program uses. Default: none.
	Isolate string
	// Tests are example calls with the decisions that are expected.
	Tests []Test
}

// Rule is one rule.
type Rule struct {
	// Name is shown to people and models; default "rule N", counted from 1.
	Name string
	// Tools are globs of upstream.tool; default all. A method that is not a tool is upstream.resources.read and the
	// like.
	Tools []string
	// When is a CEL expression that must be true; default: the rule always matches.
	When string
	// Then is the action.
	Then Action
	// Message is shown to a model when its call is refused, with the name of the rule.
	Message string
	// Limit bounds the calls if the action is limit.
	Limit *Limits
}

// Limits bound the number or cost of calls.
type Limits struct {
	// Calls is the maximum number, or total cost, of calls.
	Calls int
	// Per is the period of a count.
	Per string
	// By is the scope of a count; default the execution or the session if the period is that, else the principal.
	By string
	// Cost is an expression for the cost of one call, a whole number; default 1.
	Cost string
}

// Test is an example call with the expected decision.
type Test struct {
	// Call is the id of a tool.
	Call string
	// Args are the arguments, a JSON object; default none.
	Args json.RawMessage
	// Principal is the identity of the client.
	Principal string
	// Groups are the groups of the principal.
	Groups []string
	// Remote is true for a client over HTTP.
	Remote bool
	// Annotations are the annotations of the tool.
	Annotations map[string]bool
	// Labels are the labels of the tool; default those of the settings.
	Labels []string
	// Read are the labels of all data that was read before.
	Read []string
	// Calls are the numbers of earlier calls, by tool and by upstream.
	Calls map[string]int64
	// Expect is the expected action.
	Expect Action
	// Rule is the rule that must decide; default any.
	Rule string
	// Line is the line in the settings.
	Line int
}

// Call is the input of a decision. It may be untrusted.
type Call struct {
	Tool        tool.ID
	Annotations tool.Annotations
	// Args returns the arguments, decoded by [sallyport/internal/expr.Decode], as the upstream would get them. It is called at most once, if a rule looks at them.
	Args func() (any, error)
	// Principal and Session identify the caller. Execution is "" outside of a program. Remote means over HTTP.
	Principal, Session, Execution string
	Remote                        bool
	// Groups returns the groups of the principal; nil means none. It returns false if they are unknown, and then an expression
	// that uses them cannot be evaluated.
	Groups Groups
	// Labels are those of the tool, Read those of all data read so far.
	Labels, Read []string
	// Calls returns how often each tool and each upstream was called in the execution so far; nil means never.
	Calls func() map[string]int64
	Time  time.Time
}

// Groups returns the groups of a principal, or false if they are unknown.
type Groups func(principal string) ([]string, bool)

// value returns the value of the variable groups for a principal.
func (g Groups) value(principal string) func() (any, error) {
	return func() (any, error) {
		if g == nil {
			return []string{}, nil
		}
		groups, known := g(principal)
		if !known {
			return nil, errGroups
		}
		return groups, nil
	}
}

var errGroups = errors.New("the groups of the principal are unknown")

// name returns the form that globs match.
func (c *Call) name() string { return nameOf(c.Tool) }

// ReadsOnly reports whether the call only reads: the upstream says so, or it is for a resource or a prompt.
func (c *Call) ReadsOnly() bool {
	return c.Tool.Method() != "tools/call" || c.Annotations.ReadOnly != nil && *c.Annotations.ReadOnly
}

// Decision is the decision about a call.
type Decision struct {
	Action Action
	// Rule is the name of the rule that decided, "default", "read-only", "flow", or "" without rules.
	Rule string
	// Reason is for people; it contains no arguments.
	Reason string
	// Message is the operator's text for a model whose call is refused; may be "".
	Message string
	// Limited means that the call is denied because a limit is used up.
	Limited bool
}
