// Package expr compiles and evaluates the expressions that people write in settings
// and workflows, in CEL (the Common Expression Language): typed, without loops that
// have no end, and bounded in what they cost. Its main type is [Env], the variables
// and functions that an expression may use; [Env.Compile] makes a [Program] of a text,
// or says where the text is wrong.
package expr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cel.dev/cel-go/cel"
	celtypes "cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
)

// Type is the type of a variable or of an expression.
type Type string

// The types. A map's keys are strings.
const (
	Any     Type = "any"
	Bool    Type = "bool"
	Int     Type = "int" // int64
	Double  Type = "double"
	String  Type = "string"
	Time    Type = "time" // [time.Time]
	List    Type = "list"
	Strings Type = "list of strings"
	Map     Type = "map"
	Bools   Type = "map of booleans"
	Counts  Type = "map of whole numbers"
)

// celType are what CEL calls them.
func celType(t Type) *cel.Type {
	switch t {
	case Bool:
		return cel.BoolType
	case Int:
		return cel.IntType
	case Double:
		return cel.DoubleType
	case String:
		return cel.StringType
	case Time:
		return cel.TimestampType
	case List:
		return cel.ListType(cel.DynType)
	case Strings:
		return cel.ListType(cel.StringType)
	case Map:
		return cel.MapType(cel.StringType, cel.DynType)
	case Bools:
		return cel.MapType(cel.StringType, cel.BoolType)
	case Counts:
		return cel.MapType(cel.StringType, cel.IntType)
	}
	return cel.DynType
}

// Var is a variable that expressions may use.
type Var struct {
	Name string
	Type Type
	// Doc describes the variable to people; "" is none.
	Doc string
	// Shape is the known structure of a variable of type Any; nil means unknown. An expression that selects a member
	// which does not exist, or uses one with the wrong type, does not compile.
	Shape *Shape
}

// Options bound what expressions cost, and may add functions; nil means all defaults.
type Options struct {
	// Cost is the limit for one evaluation: about one per step, and one per ten characters of a text that is read; 0
	// means 1,000,000, a few tenths of a second.
	Cost uint64
	// Length is the maximum length of an expression, in characters; 0 means 10,000.
	Length int
	// Data adds functions over result values: text(x) and json(x), see [Text] and [JSON], parse_json(text), sum(list),
	// base64.encode and base64.decode.
	Data bool
}

const (
	defaultCost   = 1_000_000
	defaultLength = 10_000
	// maxNested bounds an expression's depth, maxNodes its size after macro expansion, maxLoops the nesting of
	// comprehensions, maxRange the length of a generated list.
	maxNested = 60
	maxNodes  = 20_000
	maxLoops  = 4
	maxRange  = 100_000
	// interruptEvery is the number of comprehension steps between checks of the context.
	interruptEvery = 64
)

// Env is the set of variables and functions that expressions may use. It is safe for concurrent use.
type Env struct {
	env    *cel.Env
	names  []string
	cost   uint64
	shapes scope // nil is without
}

// New returns an Env with these variables, the functions of CEL, and its extensions for texts, lists, sets, numbers,
// regular expressions (RE2), optional values (args.?a.orValue(0)) and cel.bind.
func New(vars []Var, opts *Options) (*Env, error) {
	if opts == nil {
		opts = &Options{}
	}
	e := &Env{cost: opts.Cost}
	if e.cost == 0 {
		e.cost = defaultCost
	}
	length := opts.Length
	if length == 0 {
		length = defaultLength
	}
	set := []cel.EnvOption{
		cel.OptionalTypes(), ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(maxRange)), ext.Sets(), ext.Math(), ext.Regex(), ext.Bindings(), ext.TwoVarComprehensions(),
		cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(length), cel.ParserRecursionLimit(maxNested), cel.ExpressionNodeLimit(maxNodes),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateComprehensionNestingLimit(maxLoops)),
	}
	if opts.Data {
		set = append(set, dataFunctions()...)
		set = append(set, cel.CustomTypeAdapter(adapter{celtypes.DefaultTypeAdapter}))
	}
	for _, v := range vars {
		set = append(set, cel.Variable(v.Name, celType(v.Type)))
		e.names = append(e.names, v.Name)
		e.addShape(v, &set)
	}
	var err error
	if e.env, err = cel.NewEnv(set...); err != nil {
		return nil, fmt.Errorf("declare variables: %w", err)
	}
	return e, nil
}

// With returns an Env with these variables added; they replace those of the same name. It costs less than [New].
func (e *Env) With(vars ...Var) (*Env, error) {
	out := &Env{cost: e.cost, names: slices.Clone(e.names), shapes: maps.Clone(e.shapes)}
	var set []cel.EnvOption
	for _, v := range vars {
		set = append(set, cel.Variable(v.Name, celType(v.Type)))
		if !slices.Contains(out.names, v.Name) {
			out.names = append(out.names, v.Name)
		}
		out.addShape(v, &set)
	}
	var err error
	if out.env, err = e.env.Extend(set...); err != nil {
		return nil, fmt.Errorf("declare variables: %w", err)
	}
	return out, nil
}

// addShape records the shape of a variable.
func (e *Env) addShape(v Var, set *[]cel.EnvOption) {
	if v.Shape != nil && e.shapes == nil {
		e.shapes = scope{}
		*set = append(*set, placeholders()...)
	}
	if e.shapes != nil {
		e.shapes[v.Name] = v.Shape
	}
}

// Program is one expression, compiled. It is safe for concurrent use.
type Program struct {
	program cel.Program
	source  string
	want    Type
	uses    []string
	brief   bool // too short to need interruption

	keys     []key
	shape    *Shape
	warnings []*Error
}

// Compile compiles an expression of type want. A value of type Any is accepted, and checked when the expression is
// evaluated. The error is an *[Error].
func (e *Env) Compile(source string, want Type) (*Program, error) {
	ast, issues := e.check(source)
	if issues.Err() != nil {
		return nil, e.firstError(source, issues.Errors())
	}
	if got := ast.OutputType(); want != Any && !celType(want).IsAssignableType(got) && !got.IsExactType(cel.DynType) {
		return nil, &Error{Line: 1, Column: 1, Message: fmt.Sprintf("the value has type %s, not %s", typeName(got), want)}
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	brief := cheap(ast.NativeRep().Expr())
	if !brief {
		options = append(options, cel.CostTracking(costEstimator{}), cel.CostLimit(e.cost), cel.InterruptCheckFrequency(interruptEvery))
	}
	program, err := e.env.Program(ast, options...)
	if err != nil {
		return nil, &Error{Line: 1, Column: 1, Message: rewriteMessage(err.Error())}
	}
	p := &Program{program: program, source: source, want: want, brief: brief, keys: e.keysIn(ast.NativeRep().Expr())}
	for _, ref := range ast.NativeRep().ReferenceMap() {
		if slices.Contains(e.names, ref.Name) && !slices.Contains(p.uses, ref.Name) {
			p.uses = append(p.uses, ref.Name)
		}
	}
	slices.Sort(p.uses)
	if e.shapes == nil {
		p.shape = shapeOf(ast.OutputType())
	} else if err := e.inferTypes(p); err != nil {
		return nil, err
	}
	return p, nil
}

// Shape returns the known shape of the expression's value, nil if unknown.
func (p *Program) Shape() *Shape { return p.shape }

// Warnings returns probable errors: selected members that have not been seen so far.
func (p *Program) Warnings() []*Error { return p.warnings }

// Uses reports whether the expression uses a variable.
func (p *Program) Uses(name string) bool { return slices.Contains(p.uses, name) }

// Variables returns the variables that the expression uses, sorted.
func (p *Program) Variables() []string { return p.uses }

// ErrCost means that an evaluation exceeded its cost limit.
var ErrCost = errors.New("the expression exceeds its cost limit")

// Vars holds the values of variables. It may be reused, by one goroutine at a time.
type Vars struct{ activation cel.Activation }

// Bind assigns values to variables. A value is a bool, int64, float64, string, [time.Time], nil, or a []any, []string
// or map[string]... of these, or [Unknown] (with [Options].Data), or a func() (any, error) that returns one. The
// function is called on first use; its error is that of the evaluation. In a map[string]int64 a missing key has the
// value 0.
func Bind(values map[string]any) Vars {
	bound := make(map[string]any, len(values))
	for name, value := range values {
		bound[name] = bind(value)
	}
	activation, err := cel.NewActivation(bound)
	if err != nil { // it is a map
		activation = cel.NoVars()
	}
	return Vars{activation}
}

// Eval evaluates the expression. Use of a missing variable is an error. The result has the wanted type, in its JSON
// form: a time is a string in RFC 3339. An error's text describes the problem and quotes no value.
func (p *Program) Eval(ctx context.Context, vars Vars) (any, error) {
	out, err := p.eval(ctx, vars)
	if err != nil {
		return nil, p.evalError(ctx, err)
	}
	value, err := native(out)
	if errors.Is(err, ErrUnknown) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	if !fits(value, p.want) {
		return nil, fmt.Errorf("the result is %s, not %s", kindOf(value), p.want)
	}
	return value, nil
}

func (p *Program) eval(ctx context.Context, vars Vars) (ref.Val, error) {
	if p.brief {
		out, _, err := p.program.Eval(vars.activation)
		return out, err
	}
	out, _, err := p.program.ContextEval(ctx, vars.activation)
	return out, err
}
