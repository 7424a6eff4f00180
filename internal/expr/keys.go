package expr

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// key is a member name that an expression selects.
type key struct {
	of   string // the variable that is selected from; "" otherwise, as for a member of a member
	name string
}

// Keys returns the member names that the expression may select from a variable or from values in it, sorted. Computed
// names are not included.
func (p *Program) Keys(variable string) (names []string) {
	for _, k := range p.keys {
		if k.of == "" || k.of == variable {
			names = append(names, k.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// keysIn finds the literal member names in an expression.
func (e *Env) keysIn(root ast.Expr) (found []key) {
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(at ast.Expr) {
		if of, name, ok := member(at); ok {
			found = append(found, key{e.variable(of), name})
		}
	}))
	return found
}

// variable returns the name of a declared variable, "" for other expressions.
func (e *Env) variable(of ast.Expr) string {
	if of.Kind() == ast.IdentKind && slices.Contains(e.names, of.AsIdent()) {
		return of.AsIdent()
	}
	return ""
}

// member splits an expression that selects a literal member: a.b, has(a.b), a["b"], a.?b, a[?"b"], "b" in a.
func member(at ast.Expr) (of ast.Expr, name string, ok bool) {
	switch at.Kind() {
	case ast.SelectKind:
		return at.AsSelect().Operand(), at.AsSelect().FieldName(), true
	case ast.CallKind:
		args := at.AsCall().Args()
		if len(args) != 2 {
			return nil, "", false
		}
		switch at.AsCall().FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			name, ok = literalText(args[1])
			return args[0], name, ok
		case operators.In:
			name, ok = literalText(args[0])
			return args[1], name, ok
		}
	}
	return nil, "", false
}
