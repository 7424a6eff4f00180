// Package template gives the values of a definition's expressions: what stands in ${{ }} in its texts is compiled once, in
// a [Scope] that says which names there are, and evaluated as often as it is needed. Its main type is [Binding].
package template

import (
	"sync"

	"sallyport/internal/expr"
)

const (
	// cost is what one evaluation may cost, see [expr.Options]: about a second.
	cost = 2_000_000
	// maxSize is the largest value of a binding as JSON, in bytes, about.
	maxSize = 8 << 20
	// maxExpressions is how many one text may have.
	maxExpressions = 200
)

// Scope is which names expressions may use. It is a value, never changed once made, and safe for concurrent use.
type Scope struct{ env func() (*expr.Env, error) }

// Any is the scope of a step: inputs, steps, env, run, and these names; each may be of any type.
func Any(names ...string) Scope {
	vars := make([]expr.Var, 0, 4+len(names))
	for _, name := range append([]string{"inputs", "steps", "env", "run"}, names...) {
		vars = append(vars, expr.Var{Name: name, Type: expr.Any})
	}
	return Only(vars...)
}

// Only is a scope that has these variables and no others.
func Only(vars ...expr.Var) Scope {
	return Scope{sync.OnceValues(func() (*expr.Env, error) { return expr.New(vars, &expr.Options{Cost: cost, Data: true}) })}
}

// With returns a scope that has these variables as well, or in place of those of the same names. To make many scopes from one
// costs less than to make each again.
func (s Scope) With(vars ...expr.Var) Scope {
	return Scope{sync.OnceValues(func() (*expr.Env, error) {
		env, err := s.env()
		if err != nil {
			return nil, err
		}
		return env.With(vars...)
	})}
}
