// Package template evaluates the expressions of a definition: each ${{ }} in its texts is compiled once, in
// a [Scope] with the available names, and can be evaluated many times. Its main type is [Binding].
package template

import (
	"sync"

	"sallyport/internal/expr"
)

const (
	// cost is the cost limit of one evaluation, see [expr.Options]: about a second.
	cost = 2_000_000
	// maxSize is the approximate size limit of a binding's value as JSON, in bytes.
	maxSize = 8 << 20
	// maxExpressions limits the expressions in one text.
	maxExpressions = 200
)

// Scope is the set of names that expressions may use. It is immutable.
type Scope struct{ env func() (*expr.Env, error) }

// Any returns the scope of a step: inputs, steps, env, run, and names, all of any type.
func Any(names ...string) Scope {
	vars := make([]expr.Var, 0, 4+len(names))
	for _, name := range append([]string{"inputs", "steps", "env", "run"}, names...) {
		vars = append(vars, expr.Var{Name: name, Type: expr.Any})
	}
	return Only(vars...)
}

// Only returns a scope that has only these variables.
func Only(vars ...expr.Var) Scope {
	return Scope{sync.OnceValues(func() (*expr.Env, error) { return expr.New(vars, &expr.Options{Cost: cost, Data: true}) })}
}

// With returns a scope with additional variables, which replace those of the same name. Deriving many scopes from one
// is cheaper than creating each with Only.
func (s Scope) With(vars ...expr.Var) Scope {
	return Scope{sync.OnceValues(func() (*expr.Env, error) {
		env, err := s.env()
		if err != nil {
			return nil, err
		}
		return env.With(vars...)
	})}
}
