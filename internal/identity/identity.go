// Package identity maps the claims of an OpenID provider or an authorization server to a principal, its groups and its
// role, by expressions in CEL over the variable claims. Its main type is [Mapping].
package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/access"
	"sallyport/internal/expr"
)

// Expressions map claims, in CEL over the variable claims.
type Expressions struct {
	// Principal is an expression for the name of the caller; without one it is claims.sub. The principal is oauth: and this name.
	Principal string
	// Groups is an expression for the groups of the caller, a list of strings; default none. If the claim may be missing, write
	// claims.?groups.orValue([]).
	Groups string
	// Roles assign roles. Without them all callers have the rights of a token of http.tokens.
	Roles Roles
}

// Roles are conditions in CEL over claims and groups. The highest role with a true condition counts; a caller without a role is
// refused.
type Roles struct {
	// Viewer sees tools and its own executions, and changes nothing.
	Viewer string
	// User also runs programs, calls tools and logs in at upstreams.
	User string
	// Operator also sees the data of all principals, and answers approvals.
	Operator string
	// Admin also approves quarantined tools and reads the audit log.
	Admin string
}

// of returns the condition of a role, "" for none.
func (r Roles) of(role access.Role) string {
	return map[access.Role]string{access.Viewer: r.Viewer, access.User: r.User, access.RoleOperator: r.Operator, access.Admin: r.Admin}[role]
}

// Problem is an error in settings.
type Problem struct {
	// Key is the path of the key below the settings.
	Key []string
	// At is the position in the expression.
	At *expr.Error
}

// Identity is what claims are mapped to.
type Identity struct {
	// Principal has the prefix [access.ProviderPrefix].
	Principal string
	Groups    []string
	// Role is "" if the settings have no roles.
	Role access.Role
}

const (
	// maxName bounds the length of a name, maxGroups the number of groups.
	maxName, maxGroups = 200, 2000
	evalCost           = 100_000
	defaultPrincipal   = "claims.sub"
)

// Mapping are compiled settings. It is safe for concurrent use.
type Mapping struct {
	principal, groups *expr.Program // nil groups: none
	roles             []rule
}

type rule struct {
	role access.Role
	when *expr.Program
}

// New compiles settings. The error is for settings with a problem, see [Check].
func New(e Expressions) (*Mapping, error) {
	m, problems := compile(e)
	if len(problems) > 0 {
		return nil, fmt.Errorf("identity.%s: %w", strings.Join(problems[0].Key, "."), problems[0].At)
	}
	return m, nil
}

// Check returns the problems of settings.
func Check(e Expressions) []Problem {
	_, problems := compile(e)
	return problems
}

// Variables returns the variables of the expressions. Only conditions of roles have groups.
func Variables() []expr.Var {
	return []expr.Var{
		{Name: "claims", Type: expr.Map, Doc: "the claims of the ID token or the access token"},
		{Name: "groups", Type: expr.Strings, Doc: "the groups of the caller, in roles"},
	}
}

func compile(e Expressions) (*Mapping, []Problem) {
	m, problems := &Mapping{}, []Problem(nil)
	env, err := expr.New(Variables()[:1], &expr.Options{Cost: evalCost})
	if err != nil { // the variables are fixed
		return nil, []Problem{{At: &expr.Error{Line: 1, Column: 1, Message: err.Error()}}}
	}
	one := func(env *expr.Env, source string, want expr.Type, key ...string) *expr.Program {
		p, err := env.Compile(source, want)
		if err == nil {
			return p
		}
		wrong, ok := errors.AsType[*expr.Error](err)
		if !ok {
			wrong = &expr.Error{Line: 1, Column: 1, Message: err.Error()}
		}
		problems = append(problems, Problem{Key: key, At: wrong})
		return nil
	}
	if e.Principal == "" {
		e.Principal = defaultPrincipal
	}
	m.principal = one(env, e.Principal, expr.String, "principal")
	if e.Groups != "" {
		m.groups = one(env, e.Groups, expr.Strings, "groups")
	}
	if env, err = env.With(Variables()[1]); err != nil {
		return nil, []Problem{{At: &expr.Error{Line: 1, Column: 1, Message: err.Error()}}}
	}
	for _, role := range slices.Backward(access.Roles()) {
		if source := e.Roles.of(role); source != "" {
			m.roles = append(m.roles, rule{role, one(env, source, expr.Bool, "roles", string(role))})
		}
	}
	return m, problems
}

// ErrNoRole reports that no condition of a role is true for a caller.
var ErrNoRole = errors.New("no condition of identity.roles is true for this caller")

// Of maps the decoded claims of a token that is verified. The error names the expression that failed, and quotes no claim. It
// is [ErrNoRole] for a caller without a role.
func (m *Mapping) Of(ctx context.Context, claims map[string]any) (Identity, error) {
	vars := map[string]any{"claims": claims}
	name, err := m.principal.Eval(ctx, expr.Bind(vars))
	if err != nil {
		return Identity{}, fmt.Errorf("identity.principal: %w", err)
	}
	text, _ := name.(string)
	if !isName(text) {
		return Identity{}, errors.New("identity.principal: the name is empty, too long, or has control characters")
	}
	who := Identity{Principal: access.ProviderPrefix + text, Groups: []string{}}
	if who.Groups, err = m.groupsOf(ctx, vars); err != nil {
		return Identity{}, fmt.Errorf("identity.groups: %w", err)
	}
	vars["groups"] = who.Groups
	for _, r := range m.roles {
		yes, err := r.when.Eval(ctx, expr.Bind(vars))
		if err != nil {
			return Identity{}, fmt.Errorf("identity.roles.%s: %w", r.role, err)
		}
		if yes == true {
			who.Role = r.role
			return who, nil
		}
	}
	if len(m.roles) > 0 {
		return Identity{}, ErrNoRole
	}
	return who, nil
}

func (m *Mapping) groupsOf(ctx context.Context, vars map[string]any) ([]string, error) {
	groups := []string{}
	if m.groups == nil {
		return groups, nil
	}
	value, err := m.groups.Eval(ctx, expr.Bind(vars))
	if err != nil {
		return nil, err
	}
	list, ok := value.([]any)
	if !ok || len(list) > maxGroups {
		return nil, fmt.Errorf("this is no list of at most %d texts", maxGroups)
	}
	for _, item := range list {
		if name, ok := item.(string); ok && isName(name) {
			groups = append(groups, name)
		} else {
			return nil, errors.New("the name of a group is empty, too long, or has control characters")
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}

// isName reports whether a text from a provider can be a name.
func isName(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && strings.TrimSpace(name) == name &&
		!strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) })
}
