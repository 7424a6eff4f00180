package expr

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	celtypes "cel.dev/cel-go/common/types"

	"sallyport/internal/sanitize"
)

// inference propagates shapes through an expression. CEL describes structures only as messages, which lack the
// operations of maps; so an expression is checked in two passes. This pass follows members and items, reports the
// missing ones, and replaces each value of known type by a variable of CEL's type; then CEL checks the rest.
type inference struct {
	source   string
	info     *ast.SourceInfo
	factory  ast.ExprFactory
	faults   []*Error // errors
	warnings []*Error // warnings
}

// scope holds the shapes of the variables in scope.
type scope map[string]*Shape

func (s scope) with(name string, shape *Shape) scope {
	out := maps.Clone(s)
	if name != "" {
		out[name] = shape
	}
	return out
}

// expr returns the shape of an expression.
func (i *inference) expr(e ast.Expr, in scope) *Shape {
	switch e.Kind() {
	case ast.IdentKind:
		shape := in[strings.TrimPrefix(e.AsIdent(), ".")]
		i.replace(e, shape)
		return shape
	case ast.SelectKind:
		return i.selectExpr(e, in)
	case ast.CallKind:
		return i.call(e, in)
	case ast.ListKind:
		return i.listExpr(e.AsList(), in)
	case ast.MapKind:
		return i.mapExpr(e.AsMap(), in)
	case ast.ComprehensionKind:
		return i.loop(e.AsComprehension(), in)
	case ast.LiteralKind:
		return literal(e)
	}
	return nil
}

// replace replaces a value by a placeholder variable of the same type.
func (i *inference) replace(e ast.Expr, shape *Shape) {
	switch t := shape.kind(); t {
	case Bool, Int, String, List, Map:
		e.SetKindCase(i.factory.NewIdent(e.ID(), placeholder(t)))
	}
}

// widen makes CEL treat a value as of any type: a nullable value may be compared with null, and a condition may
// choose between types.
func (i *inference) widen(e ast.Expr, shape *Shape) {
	if e.Kind() == ast.IdentKind && e.AsIdent() == placeholder(shape.kind()) {
		e.SetKindCase(i.factory.NewIdent(e.ID(), placeholder(Any)))
	}
}

func (i *inference) selectExpr(e ast.Expr, in scope) *Shape {
	sel := e.AsSelect()
	operand := i.expr(sel.Operand(), in)
	if sel.IsTestOnly() {
		i.member(operand, sel.FieldName(), e.ID(), true)
		return &Shape{Type: Bool}
	}
	shape := i.member(operand, sel.FieldName(), e.ID(), false)
	i.replace(e, shape)
	return shape
}

// member returns the shape of a member; asked means that the expression itself allows it to be missing.
func (i *inference) member(of *Shape, name string, at int64, asked bool) *Shape {
	if of.kind() != Map {
		return nil // CEL says what is wrong with that
	}
	shape, known := of.Field(name)
	switch {
	case known || asked && of.Open:
	case asked || of.Open:
		i.warn(at, name, of.missing(name))
	default:
		i.fault(at, name, of.missing(name))
	}
	return shape
}

func (i *inference) call(e ast.Expr, in scope) *Shape {
	call := e.AsCall()
	var target *Shape
	if call.IsMemberFunction() {
		target = i.expr(call.Target(), in)
	}
	args := make([]*Shape, len(call.Args()))
	for n, arg := range call.Args() {
		args[n] = i.expr(arg, in)
	}
	switch call.FunctionName() {
	case operators.Index:
		shape := i.index(args[0], call.Args()[1], false)
		i.replace(e, shape)
		return shape
	case operators.OptIndex, operators.OptSelect:
		i.index(args[0], call.Args()[1], true)
	case operators.Conditional:
		if args[1].kind() != args[2].kind() {
			i.widen(call.Args()[1], args[1])
			i.widen(call.Args()[2], args[2])
		}
		return commonShape(args[1], args[2])
	case operators.Equals, operators.NotEquals:
		for n, other := range []int{1, 0} {
			if call.Args()[other].Kind() == ast.LiteralKind && args[other] == nil {
				i.widen(call.Args()[n], args[n])
			}
		}
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide:
		i.arithmetic(e.ID(), args)
	case "sort", "@sortByAssociatedKeys", "distinct", "reverse", "slice":
		return target
	}
	return nil
}

// index is x[y], or x[?y].
func (i *inference) index(of *Shape, key ast.Expr, asked bool) *Shape {
	if of.kind() == List {
		return of.Elem
	}
	if name, ok := literalText(key); ok {
		return i.member(of, name, key.ID(), asked)
	}
	if of.kind() == Map && len(of.Fields) == 0 {
		return of.Elem
	}
	return nil
}

// arithmetic warns of operations that fail on some numbers: CEL does not add an int to a double, and which one a JSON
// number is, is known only at run time.
func (i *inference) arithmetic(at int64, args []*Shape) {
	has := func(t Type) bool { return slices.ContainsFunc(args, func(s *Shape) bool { return s.kind() == t }) }
	switch {
	case !has(Double) || has(List):
	case has(String):
		i.warn(at, "", "a number is not text: write text(...) around it")
	default:
		i.warn(at, "", "a number from JSON may be whole or not, and CEL does not mix the two: write double(...) around it")
	}
}

// commonShape returns the shape that two values have in common.
func commonShape(a, b *Shape) *Shape {
	switch {
	case a == b:
		return a
	case a.kind() != b.kind():
		return nil
	case a.kind() == Map:
		return &Shape{Type: Map, Open: true}
	}
	return &Shape{Type: a.kind()}
}

func (i *inference) listExpr(list ast.ListExpr, in scope) *Shape {
	out := &Shape{Type: List}
	for n, e := range list.Elements() {
		shape := i.expr(e, in)
		if n == 0 {
			out.Elem = shape
		}
		out.Elem = commonShape(out.Elem, shape)
	}
	return out
}

func (i *inference) mapExpr(object ast.MapExpr, in scope) *Shape {
	out := &Shape{Type: Map}
	for _, entry := range object.Entries() {
		pair := entry.AsMapEntry()
		i.expr(pair.Key(), in)
		shape := i.expr(pair.Value(), in)
		if name, ok := literalText(pair.Key()); ok {
			out.Fields = append(out.Fields, Field{Name: name, Shape: shape, Optional: pair.IsOptional()})
		} else {
			out.Open = true
		}
	}
	return out
}

// unused is the name of the unused variable in cel.bind's comprehension.
const unused = "#unused"

func (i *inference) loop(c ast.ComprehensionExpr, in scope) *Shape {
	over := i.expr(c.IterRange(), in)
	init := i.expr(c.AccuInit(), in)
	if c.IterVar() == unused { // cel.bind
		return i.expr(c.Result(), in.with(c.AccuVar(), init))
	}
	after := in.with(c.AccuVar(), nil)
	inner := after
	first, second := loopVariables(over, c.HasIterVar2())
	inner = inner.with(c.IterVar(), first).with(c.IterVar2(), second)
	i.expr(c.LoopCondition(), inner)
	added, collects := i.step(c, inner)
	i.expr(c.Result(), after)
	if collects && c.AccuInit().Kind() == ast.ListKind {
		return &Shape{Type: List, Elem: added}
	}
	return nil
}

// loopVariables returns the shapes of the loop variables over a value.
func loopVariables(over *Shape, two bool) (first, second *Shape) {
	switch over.kind() {
	case List:
		if two {
			return &Shape{Type: Int}, over.Elem
		}
		return over.Elem, nil
	case Map:
		if len(over.Fields) == 0 {
			second = over.Elem
		}
		return &Shape{Type: String}, second
	}
	return nil, nil
}

// step infers a loop's step, and the shape of what it appends to a list: map and filter are built from these.
func (i *inference) step(c ast.ComprehensionExpr, in scope) (added *Shape, collects bool) {
	e := c.LoopStep()
	if call, ok := callOf(e, operators.Conditional, 3); ok {
		i.expr(call.Args()[0], in)
		e = call.Args()[1]
	}
	call, ok := callOf(e, operators.Add, 2)
	if !ok || call.Args()[1].Kind() != ast.ListKind {
		i.expr(e, in)
		return nil, false
	}
	list := i.expr(call.Args()[1], in)
	return list.Elem, true
}

func callOf(e ast.Expr, function string, args int) (ast.CallExpr, bool) {
	if e.Kind() != ast.CallKind {
		return nil, false
	}
	call := e.AsCall()
	return call, call.FunctionName() == function && len(call.Args()) == args
}

func literalText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(celtypes.String)
	return string(text), ok
}

func literal(e ast.Expr) *Shape {
	switch e.AsLiteral().(type) {
	case celtypes.Bool:
		return &Shape{Type: Bool}
	case celtypes.Int, celtypes.Uint:
		return &Shape{Type: Int}
	case celtypes.String:
		return &Shape{Type: String}
	}
	return nil
}

func (i *inference) fault(at int64, name, message string) {
	i.faults = append(i.faults, i.at(at, name, message))
}

func (i *inference) warn(at int64, name, message string) {
	i.warnings = append(i.warnings, i.at(at, name, message))
}

// at returns an error at an expression's position: for a name, after the dot at which CEL reports it.
func (i *inference) at(id int64, name, message string) *Error {
	out := place(i.source, i.info.GetStartLocation(id))
	rest := i.source[out.Offset:]
	if skip := len(rest) - len(strings.TrimLeft(rest, ".?[ ")); name != "" && strings.HasPrefix(rest[skip:], name) {
		out.Offset, out.Column = out.Offset+skip, out.Column+skip
	}
	out.Message = sanitize.Line(message, maxMessage)
	return out
}

// inferTypes infers the types of an expression that compiles, from the shapes of its variables.
func (e *Env) inferTypes(p *Program) error {
	parsed, issues := e.env.Parse(p.source)
	if issues.Err() != nil {
		return e.firstError(p.source, issues.Errors())
	}
	native := parsed.NativeRep()
	i := &inference{source: p.source, info: native.SourceInfo(), factory: ast.NewExprFactory()}
	p.shape = i.expr(native.Expr(), e.shapes)
	p.warnings = i.warnings
	if len(i.faults) > 0 {
		return slices.MinFunc(i.faults, func(a, b *Error) int { return a.Offset - b.Offset })
	}
	hideNulls(native)
	checked, issues := e.env.Check(parsed)
	if issues.Err() != nil {
		return e.firstError(p.source, issues.Errors())
	}
	if p.shape == nil {
		p.shape = shapeOf(checked.OutputType())
	}
	if got := p.shape.kind(); p.want != Any && got != Any && !fitsType(got, p.want) {
		return &Error{Line: 1, Column: 1, Message: fmt.Sprintf("the value has type %s, not %s", got, p.want)}
	}
	return nil
}

// fitsType reports whether a value of type got may be one of type want.
func fitsType(got, want Type) bool {
	switch want {
	case Strings:
		want = List
	case Bools, Counts:
		want = Map
	case Time:
		want = String
	case Int:
		return got == Int || got == Double
	case Double:
		return got == Double || got == Int
	}
	return got == want
}
