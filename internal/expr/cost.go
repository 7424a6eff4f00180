package expr

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	celtypes "cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// costEstimator prices a step whose operand sizes CEL does not know at compile time, such as joining or comparing two strings
// of 1 MB.
type costEstimator struct{}

// CallCost implements CEL's estimator. For functions that it does not know, CEL's own price applies.
func (costEstimator) CallCost(_, overload string, args []ref.Val, result ref.Val) *uint64 {
	if overload != "" && !isDataFunction(overload) {
		return nil
	}
	price := 1 + size(result)/10
	for _, arg := range args {
		price += size(arg) / 10
	}
	return &price
}

// size returns the size of v without nested values.
func size(v ref.Val) uint64 {
	switch v := v.(type) {
	case celtypes.String:
		return uint64(len(v))
	case celtypes.Bytes:
		return uint64(len(v))
	case traits.Lister:
		return items(v)
	case traits.Mapper:
		return items(v)
	}
	return 0
}

func items(v traits.Sizer) uint64 {
	n, _ := v.Size().(celtypes.Int)
	return 10 * uint64(max(n, 0))
}

const maxCheap = 100

// cheapFunctions lists functions that take at most linear time in their operands and produce nothing larger.
var cheapFunctions = []string{
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.Negate,
	operators.In, operators.Index, operators.OptIndex, operators.OptSelect, overloads.Size, overloads.StartsWith, overloads.EndsWith, overloads.Contains,
	"orValue", "hasValue", overloads.TimeGetHours, overloads.TimeGetDayOfWeek,
}

// cheap reports whether an expression performs only a few such steps, each once. Tracking their cost would take
// longer than the steps do.
func cheap(e ast.Expr) bool {
	nodes, steady := 0, true
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		nodes++
		switch e.Kind() {
		case ast.ComprehensionKind, ast.StructKind:
			steady = false
		case ast.CallKind:
			steady = steady && slices.Contains(cheapFunctions, e.AsCall().FunctionName())
		}
	}))
	return steady && nodes <= maxCheap
}
