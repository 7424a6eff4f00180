package expr

import (
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	celtypes "cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// check parses an expression and checks its types. CEL compares a list, a map or a text with null only where its type
// is unknown; here every value may be null, as the result of a skipped step.
func (e *Env) check(source string) (*cel.Ast, *cel.Issues) {
	checked, issues := e.env.Compile(source)
	if issues.Err() == nil || !strings.Contains(source, "null") {
		return checked, issues
	}
	parsed, unread := e.env.Parse(source)
	if unread.Err() != nil || !hideNulls(parsed.NativeRep()) {
		return checked, issues
	}
	return e.env.Check(parsed)
}

// hideNulls replaces each null in a comparison by dyn(null), of an unknown type. It reports whether there was any.
func hideNulls(parsed *ast.AST) (found bool) {
	factory, next := ast.NewExprFactory(), ast.MaxID(parsed)
	ast.PostOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Equals && e.AsCall().FunctionName() != operators.NotEquals {
			return
		}
		for _, arg := range e.AsCall().Args() {
			if arg.Kind() == ast.LiteralKind && arg.AsLiteral() == ref.Val(celtypes.NullValue) {
				arg.SetKindCase(factory.NewCall(arg.ID(), "dyn", factory.NewLiteral(next, celtypes.NullValue)))
				next, found = next+1, true
			}
		}
	}))
	return found
}
