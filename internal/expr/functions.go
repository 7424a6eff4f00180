package expr

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"cel.dev/cel-go/cel"
	celtypes "cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
)

// The overloads of the functions of [Options].Data.
const (
	textOf    = "text_any"
	jsonOf    = "json_any"
	parseJSON = "parse_json_string"
	sumOf     = "sum_list"
)

// dataFunctions returns functions that CEL lacks and expressions over results need.
func dataFunctions() []cel.EnvOption {
	unary := func(name, overload string, arg, result *cel.Type, do func(ref.Val) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.Overload(overload, []*cel.Type{arg}, result, cel.UnaryBinding(do)))
	}
	return []cel.EnvOption{
		ext.Encoders(),
		unary("text", textOf, cel.DynType, cel.StringType, func(v ref.Val) ref.Val { return render(v, Text) }),
		unary("json", jsonOf, cel.DynType, cel.StringType, func(v ref.Val) ref.Val { return render(v, JSON) }),
		unary("parse_json", parseJSON, cel.StringType, cel.DynType, parseText),
		unary("sum", sumOf, cel.ListType(cel.DynType), cel.DynType, sum),
	}
}

// isDataFunction reports whether overload is a data function. CEL does not know the cost of these.
func isDataFunction(overload string) bool {
	return slices.Contains([]string{textOf, jsonOf, parseJSON, sumOf}, overload)
}

// render renders a value as a text.
func render(v ref.Val, how func(any) (string, error)) ref.Val {
	value, err := native(v)
	if err != nil {
		return celtypes.WrapErr(err)
	}
	text, err := how(value)
	if err != nil {
		return celtypes.WrapErr(err)
	}
	return celtypes.String(text)
}

func parseText(v ref.Val) ref.Val {
	text, ok := v.(celtypes.String)
	if !ok {
		return celtypes.MaybeNoSuchOverloadErr(v)
	}
	value, err := Decode([]byte(text))
	if err != nil {
		return celtypes.WrapErr(errNoJSON)
	}
	return celtypes.DefaultTypeAdapter.NativeToValue(value)
}

// sum adds numbers. The result is an int if all are ints.
func sum(v ref.Val) ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return celtypes.MaybeNoSuchOverloadErr(v)
	}
	var total ref.Val = celtypes.IntZero
	for it := list.Iterator(); it.HasNext() == celtypes.True; {
		next := it.Next()
		_, whole := next.(celtypes.Int)
		if _, still := total.(celtypes.Int); still != whole {
			total, next = toDouble(total), toDouble(next)
		}
		adder, ok := total.(traits.Adder)
		if !ok {
			return total
		}
		total = adder.Add(next)
	}
	return total
}

func toDouble(v ref.Val) ref.Val {
	switch v.(type) {
	case celtypes.Int, celtypes.Double, celtypes.Uint:
		return v.ConvertToType(celtypes.DoubleType)
	}
	return celtypes.MaybeNoSuchOverloadErr(v)
}

// Text returns the form of a value within a text: a string unchanged, "" for nil, all others as [JSON].
func Text(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	}
	return JSON(value)
}

// JSON encodes a value of an expression as compact JSON with sorted keys.
func JSON(value any) (string, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), nil
}
