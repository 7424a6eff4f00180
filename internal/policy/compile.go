package policy

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sallyport/internal/expr"
	"sallyport/internal/tool"
)

// Variables returns the variables of expressions.
func Variables() []expr.Var {
	return []expr.Var{
		{Name: "upstream", Type: expr.String, Doc: "the name of the upstream in programs"},
		{Name: "tool", Type: expr.String, Doc: "the name of the tool in programs, without the upstream; for another method its name with a dot, as in resources.read"},
		{Name: "method", Type: expr.String, Doc: "the method of MCP: tools/call, resources/read, prompts/get and others"},
		{Name: "annotations", Type: expr.Bools, Doc: "readOnly, destructive, idempotent and openWorld of the tool; one that the upstream did not send is absent"},
		{Name: "args", Type: expr.Map, Doc: "the arguments, as the upstream would get them"},
		{Name: "principal", Type: expr.String, Doc: "the identity of the client, as in the log; empty without authentication"},
		{Name: "groups", Type: expr.Strings, Doc: "the groups of the principal at the OpenID provider, as http.identity.groups gives them; unknown for a principal that has not called since the gateway started"},
		{Name: "session", Type: expr.String, Doc: "the session of the client"},
		{Name: "execution", Type: expr.String, Doc: "the id of the program, or of the run of a workflow; empty for other calls"},
		{Name: "remote", Type: expr.Bool, Doc: "true if the request came over HTTP"},
		{Name: "labels", Type: expr.Strings, Doc: "the labels of the tool"},
		{Name: "read", Type: expr.Strings, Doc: "the labels of all data that was read before"},
		{Name: "calls", Type: expr.Counts, Doc: "how often each tool and each upstream was called in the execution before, as in calls[\"github.push\"] and calls[\"github\"]"},
		{Name: "time", Type: expr.Time, Doc: "the time of the call, in UTC"},
	}
}

// Problem is an error in the settings.
type Problem struct {
	// Rule is the index of the rule or, with InTests, of the test; -1 for none.
	Rule    int
	InTests bool
	// Key is the key: "then", "tools", "when", "limit", "limit.cost", ...; Item is the index in a list, -1 for none.
	Key  string
	Item int
	// At is the position in an expression, nil for the whole.
	At *expr.Error
	// Message is one line.
	Message string
}

// compiled is a compiled rule.
type compiled struct {
	Rule
	index int
	globs []string
	when  *expr.Program // nil means true
	cost  *expr.Program // nil means 1
	limit limiter
}

// Policy is a compiled set of rules. It is safe for concurrent use.
type Policy struct {
	set     Settings
	rules   []compiled
	env     *expr.Env
	isolate *expr.Program // nil means never
	counts  *Counts
}

// maxRules bounds the number of rules, and with it the compile time.
const maxRules = 500

// evalCost is the cost limit of one expression: some tens of milliseconds.
const evalCost = 200_000

// New compiles settings. Counts hold the counts of limits, also across reloads of the rules; nil starts with empty
// counts. It returns an error for settings with a problem, see [Check].
func New(set Settings, counts *Counts) (*Policy, error) {
	p, problems := compile(set)
	if len(problems) > 0 {
		return nil, errors.New(problems[0].Message)
	}
	if p.counts = counts; counts == nil {
		p.counts = NewCounts(nil)
	}
	return p, nil
}

// Check returns all problems of the settings.
func Check(set Settings) []Problem {
	_, problems := compile(set)
	return problems
}

func compile(set Settings) (*Policy, []Problem) {
	p := &Policy{set: set}
	var problems []Problem
	if !slices.Contains([]Action{"", Allow, Deny, Ask}, set.Default) {
		problems = append(problems, Problem{Rule: -1, Item: -1, Key: "default", Message: "default must be one of allow, ask, deny"})
	}
	if !slices.Contains([]Flow{"", FlowAsk, FlowDeny, FlowOff}, set.Flow) {
		problems = append(problems, Problem{Rule: -1, Item: -1, Key: "flow", Message: "flow must be one of ask, deny, off"})
	}
	problems = append(problems, p.compileIsolate()...)
	if len(set.Rules) > maxRules {
		return p, append(problems, Problem{Rule: -1, Item: -1, Key: "rules", Message: fmt.Sprintf("there are %d rules, of at most %d", len(set.Rules), maxRules)})
	}
	if len(set.Rules) == 0 {
		return p, append(problems, p.testProblems()...)
	}
	env, err := expr.New(Variables(), &expr.Options{Cost: evalCost})
	if err != nil { // the variables are fixed
		return p, append(problems, Problem{Rule: -1, Item: -1, Message: err.Error()})
	}
	p.env = env
	for i, r := range set.Rules {
		c := compiled{Rule: r, index: i}
		if c.Name == "" {
			c.Name = fmt.Sprintf("rule %d", i+1)
		}
		problems = append(problems, c.compile(env)...)
		p.rules = append(p.rules, c)
	}
	problems = append(problems, p.nameProblems()...)
	return p, append(problems, p.testProblems()...)
}

// compile checks and compiles one rule.
func (r *compiled) compile(env *expr.Env) (problems []Problem) {
	wrong := func(key string, item int, at *expr.Error, message string) {
		problems = append(problems, Problem{Rule: r.index, Key: key, Item: item, At: at, Message: message})
	}
	if !slices.Contains([]Action{Allow, Deny, Ask, Limit}, r.Then) {
		wrong("then", -1, nil, "a rule needs then: allow, deny, ask or limit")
	}
	for i, g := range r.Tools {
		if message := CheckGlob(g); message != "" {
			wrong("tools", i, nil, message)
		}
		r.globs = append(r.globs, glob(g))
	}
	if r.Tools != nil && len(r.Tools) == 0 {
		wrong("tools", -1, nil, "an empty list matches no tool; leave the key out for all tools")
	}
	var bad *expr.Error
	if r.When != "" {
		if r.when, bad = compileExpr(env, r.When, expr.Bool); bad != nil {
			wrong("when", -1, bad, bad.Message)
		}
	}
	for _, w := range r.Limit.problems(r.Then) {
		wrong(w.key, -1, nil, w.message)
	}
	if r.Limit != nil && r.Limit.Cost != "" {
		if r.cost, bad = compileExpr(env, r.Limit.Cost, expr.Int); bad != nil {
			wrong("limit.cost", -1, bad, bad.Message)
		}
	}
	if r.Limit != nil {
		r.limit = newLimiter(*r.Limit, r.identity())
	}
	return problems
}

func compileExpr(env *expr.Env, source string, want expr.Type) (*expr.Program, *expr.Error) {
	p, err := env.Compile(source, want)
	if err == nil {
		return p, nil
	}
	if wrong, ok := errors.AsType[*expr.Error](err); ok {
		return nil, wrong
	}
	return nil, &expr.Error{Line: 1, Column: 1, Message: err.Error()}
}

// nameProblems finds ambiguous rule names.
func (p *Policy) nameProblems() (problems []Problem) {
	seen := map[string]bool{"default": true, "read-only": true, "flow": true, "approval": true}
	for _, c := range p.rules {
		if seen[c.Name] {
			problems = append(problems, Problem{Rule: c.index, Key: "name", Item: -1, Message: fmt.Sprintf("there is another rule %.40q, or the name is reserved; names must be unique", c.Name)})
		}
		seen[c.Name] = true
	}
	return problems
}

// isToolGlob reports whether a text is "*" or a glob with a dot, as in tool ids.
func isToolGlob(text string) bool {
	_, err := path.Match(text, "")
	return err == nil && (text == "*" || strings.Contains(text, "."))
}

// glob normalizes a glob for comparison with names. An upstream may be written as in the settings.
func glob(text string) string {
	up, name, ok := strings.Cut(text, ".")
	if !ok || strings.ContainsAny(up, `*?[\`) {
		return text
	}
	return tool.Identifier(up) + "." + name
}

// nameOf returns the form of an id that globs match: a method's slashes are dots.
func nameOf(id tool.ID) string { return id.Upstream + "." + strings.ReplaceAll(id.Name, "/", ".") }

// covers reports whether the rule applies to a tool of that name.
func (r *compiled) covers(name string) bool {
	return r.globs == nil || slices.ContainsFunc(r.globs, func(g string) bool { ok, _ := path.Match(g, name); return ok })
}

// holds reports whether the rule's condition is true.
func (r *compiled) holds(ctx context.Context, vars expr.Vars) (bool, error) {
	if r.when == nil {
		return true, nil
	}
	out, err := r.when.Eval(ctx, vars)
	yes, _ := out.(bool)
	return yes, err
}
