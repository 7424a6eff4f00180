package template_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/expr"
	"sallyport/internal/tool"
)

func text(s string) spec.Text {
	return spec.Text{Pos: spec.Pos{Line: 3, Column: 1}, Text: s}
}

func value(s string) spec.Value { return spec.Value{Kind: spec.String, Text: text(s)} }

// vars are what a run has in its middle.
func vars(t testing.TB) map[string]any {
	t.Helper()
	all, err := expr.Decode([]byte(`{"inputs":{"name":"Ann","n":3,"path":"a/b","list":[1,2.5,"x"],"nil":null},"steps":{"a":{"output":{"content":"hi","big":12345678901234567},"status":"ok"}},
		"env":{},"run":{"id":"r-1","started":"2026-11-22T10:00:00Z"},"item":"<é>"}`))
	if err != nil {
		t.Fatal(err)
	}
	return all.(map[string]any)
}

func TestEval(t *testing.T) {
	scope := template.Any("item")
	for source, want := range map[string]any{
		`plain`:                         "plain",
		``:                              "",
		`${{ inputs.n }}`:               int64(3),
		`${{inputs.n}}`:                 int64(3),
		` ${{ inputs.n }}`:              " 3",
		`${{ inputs.n + 1 }}${{ "x" }}`: "4x",
		`Dear ${{ inputs.name }}, ${{ inputs.nil }}!`:              "Dear Ann, !",
		`${{ inputs.list }}`:                                       []any{int64(1), 2.5, "x"},
		`l: ${{ inputs.list }}`:                                    `l: [1,2.5,"x"]`,
		`${{ {"a": {"b": item}} }}`:                                map[string]any{"a": map[string]any{"b": "<é>"}},
		`m: ${{ {"a": {"b": item}} }}`:                             `m: {"a":{"b":"<é>"}}`,
		`${{ "}}" + '}}' + r'\' + """ "}} """ + "\"}}" }}`:         `}}}}\ "}} "}}`,
		"${{ inputs.n // a }} comment\n + 1 }}":                    int64(4),
		`$${{ inputs.n }}`:                                         "${{ inputs.n }}",
		`a $${{ b ${{ inputs.n }}`:                                 "a ${{ b 3",
		`${{ text(inputs.list) + text(null) + text(4.0) }}`:        `[1,2.5,"x"]4`,
		`${{ json("a") + json({"b": 1, "a": [null, true]}) }}`:     `"a"{"a":[null,true],"b":1}`,
		`${{ parse_json('{"a": [1.0, 2.5]}').a }}`:                 []any{int64(1), 2.5},
		`${{ sum([1, 2]) + sum([]) }}`:                             int64(3),
		`${{ sum([1, 2.5, 1]) }}`:                                  4.5,
		`${{ 4.0 / 2.0 }}`:                                         int64(2), // as it would be read again
		`${{ steps.a.output.big }}`:                                int64(12345678901234567),
		`${{ steps.?b.output.orValue("none") }}`:                   "none",
		`${{ timestamp(run.started) + duration("1h") }}`:           "2026-11-22T11:00:00Z",
		`${{ string(base64.decode(base64.encode(b"hi"))) }}`:       "hi",
		`${{ inputs.path.split("/").map(p, p.upperAscii()) }}`:     []any{"A", "B"},
		`${{ steps.a.status == "ok" && inputs.n > 2 ? [] : [1] }}`: []any{},
	} {
		b, problems := template.Compile(scope, value(source))
		if len(problems) > 0 {
			t.Errorf("%s: %+v", source, problems)
			continue
		}
		got, err := b.Eval(t.Context(), vars(t))
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s = %#v, %v; want %#v", source, got, err, want)
		}
	}
}

// A value of many parts is put together as it stands, and says what it looks at.
func TestEvalDeep(t *testing.T) {
	v := spec.Value{Kind: spec.Map, Members: []spec.Member{
		{Name: text("a"), Value: spec.Value{Kind: spec.List, Items: []spec.Value{value("${{ item }}"), {Kind: spec.Number, Scalar: 2.0}, {Kind: spec.Null}, {Kind: spec.Bool, Scalar: true}}}},
		{Name: text("b"), Value: spec.Value{Kind: spec.Map}},
	}}
	b, problems := template.Compile(template.Any().With(expr.Var{Name: "item", Type: expr.Any}), v)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := map[string]any{"a": []any{"<é>", int64(2), nil, true}, "b": map[string]any{}}
	if got, err := b.Eval(t.Context(), vars(t)); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v %v", got, err)
	}
	if !b.Uses("item") || b.Uses("inputs") || b.Constant() {
		t.Error("wrong uses")
	}
	if fixed, _ := template.Compile(template.Any(), spec.Value{Kind: spec.List, Items: v.Members[0].Value.Items[1:]}); !fixed.Constant() {
		t.Error("no expression, and not constant")
	}
}

func TestProblems(t *testing.T) {
	scope := template.Any("item")
	for _, tc := range []struct {
		source, message string
		offset          int
	}{
		{`é ${{ input.n }}`, `there is no input; did you mean "inputs"?`, 7},
		{`a ${{ inputs.n`, "this ${{ has no }}", 2},
		{`a ${{ 'b }}`, "the string that begins here has no end", 6},
		{`${{ inputs.n // 2 }}`, "comment", 13},
		{`${{ inputs.n + }}`, "unexpected the end", 14},
		{`${{ }}`, "there is no expression here", 3},
		{`${{ {"a": 1} }`, "has no }}", 0},
		{"${{ 1 +\n  nope }}", "there is no nope", 10},
		{strings.Repeat("${{1}}", 201), "200 expressions", 0},
	} {
		b, problems := template.Compile(scope, value(tc.source))
		if b != nil || len(problems) != 1 {
			t.Errorf("%.40s: %v", tc.source, problems)
			continue
		}
		if p := problems[0]; !strings.Contains(p.Message, tc.message) || p.Offset != tc.offset {
			t.Errorf("%.40s: %d %s, want %d %s", tc.source, p.Offset, p.Message, tc.offset, tc.message)
		}
	}
	two := spec.Value{Kind: spec.List, Items: []spec.Value{value("${{ a }} ${{ b }}"), value("${{ c }}")}}
	if _, problems := template.Compile(scope, two); len(problems) != 3 {
		t.Errorf("%d problems", len(problems))
	}
}

func TestEvalErrors(t *testing.T) {
	scope := template.Any()
	for source, want := range map[string]string{
		`a ${{ inputs.nope }}`:           "${{ inputs.nope }} in line 3: there is no key nope",
		`${{ 1.0 / 0.0 }}`:               "a number is too large",
		`${{ parse_json(inputs.name)}`:   "",
		`${{ parse_json(inputs.name) }}`: "a text is not JSON",
		`${{ sum(["a"]) }}`:              "does not support",
		`${{ cel.bind(s, json(lists.range(20000)), lists.range(100).map(i, s)) }}`:       "8 MiB",
		`${{ json(cel.bind(s, json(lists.range(20000)), lists.range(100).map(i, s))) }}`: "8 MiB",
	} {
		b, problems := template.Compile(scope, value(source))
		if len(problems) > 0 {
			if want != "" {
				t.Errorf("%s: %v", source, problems)
			}
			continue
		}
		_, err := b.Eval(t.Context(), vars(t))
		if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.Invalid || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	b, _ := template.Compile(scope, value(`${{ lists.range(100000).all(a, lists.range(100000).all(b, a >= 0)) }}`))
	if _, err := b.Eval(ctx, vars(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after its time: %v", err)
	}
}

func TestCondition(t *testing.T) {
	scope := template.Any()
	b, problems := template.CompileText(scope, text(` inputs.n > 2 `), expr.Bool)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if ok, err := b.Bool(t.Context(), vars(t)); err != nil || !ok {
		t.Errorf("%v %v", ok, err)
	}
	if _, problems = template.CompileText(scope, text(`"a" + "b"`), expr.Bool); len(problems) != 1 || !strings.Contains(problems[0].Message, "not bool") {
		t.Errorf("%v", problems)
	}
	b, _ = template.CompileText(scope, text("inputs.n"), expr.Bool)
	if _, err := b.Bool(t.Context(), vars(t)); err == nil || !strings.Contains(err.Error(), "type int, not bool") {
		t.Errorf("%v", err)
	}
}

// FuzzEval holds whatever a definition says to what the doc says: problems within the text, or a binding that comes to the same each time, in a
// form that JSON gives back as it was.
func FuzzEval(f *testing.F) {
	for _, seed := range []string{`${{ inputs.a }}`, `a ${{ {"b": {}} }} $${{ ${{ '}}' }}`, `${{ inputs.a.map(x, x / 2.0) }}`, `${{ json(inputs) + text(inputs.?a) }}`, "${{ r'\\' // }}\n }}", `${{ parse_json(inputs.a) }}`, `${{ sum([1, 0.1]) }}`, `${{ b"\xff" }}`, `${{ "\ud800" }}`} {
		f.Add(seed, `{"a":"1e17","b":[true,null,1.5]}`)
	}
	scope := template.Only(expr.Var{Name: "inputs", Type: expr.Any}).With(expr.Var{Name: "item", Type: expr.Any})
	f.Fuzz(func(t *testing.T, source, inputs string) {
		if !utf8.ValidString(source) { // no definition is
			return
		}
		b, problems := template.Compile(scope, value(source))
		for _, p := range problems {
			if p.Offset < 0 || p.Offset > len(source) || p.Message == "" || strings.ContainsAny(p.Message, "\n\x1b") {
				t.Fatalf("%q: %+v", source, p)
			}
		}
		input, err := expr.Decode([]byte(inputs))
		if b == nil || err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		got, err := b.Eval(ctx, map[string]any{"inputs": input, "item": nil})
		if err != nil {
			return
		}
		data, err := json.Marshal(got)
		if err != nil {
			t.Fatalf("%q: %v", source, err)
		}
		again, err := expr.Decode(data)
		if err != nil || !cmp.Equal(got, again) {
			t.Fatalf("%q: %#v, read again %#v, %v", source, got, again, err)
		}
		if twice, err := b.Eval(t.Context(), map[string]any{"inputs": input, "item": nil}); err != nil || !cmp.Equal(got, twice) {
			t.Fatalf("%q: %#v, then %#v %v", source, got, twice, err)
		}
	})
}

// BenchmarkWith is what a step's arguments cost: three expressions, a text with two, and a list of an earlier step.
func BenchmarkWith(b *testing.B) {
	v := spec.Value{Kind: spec.Map, Members: []spec.Member{
		{Name: text("path"), Value: value("${{ inputs.path }}/${{ steps.a.output.content }}.md")},
		{Name: text("n"), Value: value("${{ inputs.n + 1 }}")},
		{Name: text("list"), Value: value("${{ inputs.list }}")},
		{Name: text("names"), Value: value(`${{ inputs.path.split("/").map(p, p.upperAscii()) }}`)},
		{Name: text("fixed"), Value: spec.Value{Kind: spec.Bool, Scalar: true}},
	}}
	scope := template.Any()
	all := vars(b)
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			if _, problems := template.Compile(scope, v); problems != nil {
				b.Fatal(problems)
			}
		}
	})
	b.Run("eval", func(b *testing.B) {
		with, _ := template.Compile(scope, v)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := with.Eval(b.Context(), all); err != nil {
				b.Fatal(err)
			}
		}
	})
}
