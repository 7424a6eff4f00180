package expr_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/expr"
)

func env(t testing.TB, opts *expr.Options) *expr.Env {
	t.Helper()
	e, err := expr.New([]expr.Var{{Name: "args", Type: expr.Map}, {Name: "labels", Type: expr.Strings}, {Name: "calls", Type: expr.Counts}, {Name: "name", Type: expr.String}, {Name: "time", Type: expr.Time}, {Name: "any", Type: expr.Any}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func vars(t testing.TB, args string) expr.Vars {
	t.Helper()
	value, err := expr.Decode([]byte(args))
	if err != nil {
		t.Fatal(err)
	}
	return bind(value, nil)
}

func bind(args, any_ any) expr.Vars {
	return expr.Bind(map[string]any{"args": args, "labels": []string{"private"}, "calls": map[string]int64{"a.b": 3}, "name": "ann",
		"time": time.Date(2026, 11, 22, 13, 4, 5, 0, time.UTC), "any": any_})
}

func TestEval(t *testing.T) {
	e := env(t, nil)
	for _, tc := range []struct {
		source string
		type_  expr.Type
		want   any
	}{
		{`args.amount > 100`, expr.Bool, true},
		{`args.amount == 250.0 && args.whole == 3 && args.whole % 2 == 1`, expr.Bool, true},
		{`has(args.missing)`, expr.Bool, false},
		{`args.?missing.orValue("x")`, expr.String, "x"},
		{`"private" in labels && calls["a.b"] >= 3`, expr.Bool, true},
		{`args.to.all(t, t.endsWith("@corp.example"))`, expr.Bool, false},
		{`args.to[0].matches("^[a-z]+@corp[.]example$")`, expr.Bool, true},
		{`sets.contains(labels, ["private"])`, expr.Bool, true},
		{`time.getHours() >= 9 && time.getHours() < 18`, expr.Bool, true},
		{`args.all(k, v, k != "rm")`, expr.Bool, true},
		{`math.greatest(args.amount, 300)`, expr.Int, int64(300)},
		{`{"a": [1, 2.5, null, name.upperAscii()]}`, expr.Map, map[string]any{"a": []any{int64(1), 2.5, nil, "ANN"}}},
		{`time`, expr.Any, "2026-11-22T13:04:05Z"},
		{`args.big`, expr.Int, int64(9007199254740993)},
		{`any == null`, expr.Bool, true},
		{`calls["never.called"] == 0 && calls.x == 0 && !("x" in calls) && calls.size() == 1`, expr.Bool, true},
	} {
		p, err := e.Compile(tc.source, tc.type_)
		if err != nil {
			t.Errorf("%s: %v", tc.source, err)
			continue
		}
		got, err := p.Eval(t.Context(), vars(t, `{"amount":250,"whole":3.0,"to":["ann@corp.example","eve@evil.example"],"big":9007199254740993}`))
		if err != nil || !cmp.Equal(got, tc.want) {
			t.Errorf("%s = %v (%T), %v; want %v", tc.source, got, got, err, tc.want)
		}
	}
}

// What is wrong with an expression is said with its place, before anything is evaluated.
func TestCompileErrors(t *testing.T) {
	e := env(t, &expr.Options{Length: 300})
	for _, tc := range []struct {
		source  string
		line    int
		column  int
		offset  int
		message string
	}{
		{"arg.x == 1", 1, 1, 0, `there is no arg; did you mean "args"?`},
		{"true &&\n  nope", 2, 3, 10, "there is no nope; the variables are args, labels, calls, name, time, any"},
		{"name ==", 1, 8, 7, "unexpected the end"},
		{"name == 'ä' && name > 3", 1, 21, 21, "> cannot be applied to (string, int)"},
		{"name", 1, 1, 0, "the value has type string, not bool"},
		{"name.matches('(')", 1, 14, 13, "invalid matches argument"},
		{"", 1, 1, 0, "unexpected"},
		{strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100), 1, 0, -1, "recursion"},
		{strings.Repeat("1+", 200) + "1", 1, 1, 0, "size exceeds limit"},
		{"[1].all(a,[1].all(b,[1].all(c,[1].all(d,[1].all(e,true)))))", 1, 0, -1, "nesting"},
		{"name == \"\x1b[2J\" && x\x1b", 1, 0, -1, ""},
	} {
		_, err := e.Compile(tc.source, expr.Bool)
		var wrong *expr.Error
		if !errors.As(err, &wrong) {
			t.Errorf("%.40q: %v", tc.source, err)
			continue
		}
		if !strings.Contains(wrong.Message, tc.message) || wrong.Line != tc.line || tc.column > 0 && wrong.Column != tc.column || tc.offset >= 0 && wrong.Offset != tc.offset {
			t.Errorf("%.40q: %+v, want %+v", tc.source, wrong, tc)
		}
		if strings.ContainsAny(wrong.Message, "\n\x1b") || len(wrong.Message) > 210 {
			t.Errorf("bad looks: %q", wrong.Message)
		}
	}
}

func TestEvalErrors(t *testing.T) {
	e := env(t, nil)
	for source, want := range map[string]string{
		`args.missing == 1`:                  "there is no key missing",
		`args[args.secret] == 1`:             "it cannot be evaluated for this input", // not the value
		`int(args.secret) == 1`:              "it cannot be evaluated for this input",
		`args.secret > 3`:                    "an operation does not support its value's type",
		`args.zero == 0 && 1/args.zero == 1`: "it divides by zero",
		`args.secret`:                        "the result is a value of type string, not bool",
		`args`:                               "",
	} {
		p, err := e.Compile(source, expr.Bool)
		if err != nil {
			if want != "" {
				t.Errorf("%s: %v", source, err)
			}
			continue
		}
		_, err = p.Eval(t.Context(), vars(t, `{"secret":"hunter2","zero":0}`))
		if err == nil || err.Error() != want || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
}

// What costs something to make is made once, and only if it is looked at.
func TestLazy(t *testing.T) {
	made, fault := 0, errors.New("twice a key")
	v := bind(func() (any, error) { made++; return map[string]any{"a": int64(1)}, nil }, func() (any, error) { return nil, fault })
	for source, want := range map[string]string{`name == "ann"`: "", `args.a == 1 && args.a < 2`: "", `args.a == 1`: "", `any == 1`: "it cannot be evaluated for this input"} {
		p, err := env(t, nil).Compile(source, expr.Bool)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Eval(t.Context(), v); want == "" && (err != nil || got != true) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v %v", source, got, err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}

// What can be said without a value that is not known yet, is said.
func TestUnknown(t *testing.T) {
	e, err := expr.New([]expr.Var{{Name: "a", Type: expr.Any}}, &expr.Options{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	a := expr.Bind(map[string]any{"a": map[string]any{"known": int64(1), "not": expr.Unknown{}, "list": []any{expr.Unknown{}, int64(2)}}})
	for source, want := range map[string]any{`a.known`: int64(1), `a.not`: nil, `a.not.x[3]`: nil, `a.known == 1 || a.not.x`: true, `a.not && a.known == 2`: false, `a.known == 1 ? 2 : a.not`: int64(2), `a`: nil,
		`a.list.size() + a.list[1]`: int64(4), `a.list[0]`: nil, `text(a)`: nil, `has(a.not.x)`: nil, `a.not.?x.orValue(1)`: nil, `[1, a.not]`: nil} {
		p, err := e.Compile(source, expr.Any)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Eval(t.Context(), a); !cmp.Equal(got, want) || want == nil != errors.Is(err, expr.ErrUnknown) {
			t.Errorf("%s = %v, %v; want %v", source, got, err, want)
		}
	}
}

func TestUses(t *testing.T) {
	p, err := env(t, nil).Compile(`"private" in labels && has(args.x)`, expr.Bool)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Uses("args") || !p.Uses("labels") || p.Uses("name") {
		t.Error("wrong uses")
	}
}

// An expression that never ends is ended, by its cost or by whoever waits for it.
func TestBombs(t *testing.T) {
	long := `{"l":[` + strings.TrimSuffix(strings.Repeat("1,", 500), ",") + `],"s":"` + strings.Repeat("a", 1<<16) + `"}`
	for _, source := range []string{
		`args.l.all(a, args.l.all(b, args.l.all(c, args.l.all(d, a+b+c+d > 0))))`,
		`lists.range(100000).all(a, lists.range(100000).all(b, a >= 0))`,
		`args.l.map(a, args.s + args.s).size() == 0`,
		`args.l.exists(a, args.s.matches("(a+)+$") && args.s.matches("b"))`,
	} {
		p, err := env(t, &expr.Options{Cost: 20_000}).Compile(source, expr.Bool)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = p.Eval(t.Context(), vars(t, long))
		if !errors.Is(err, expr.ErrCost) {
			t.Errorf("%s: %v", source, err)
		}
		t.Logf("%s: %v", source, time.Since(start))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err = p.Eval(ctx, vars(t, long)); err == nil {
			t.Errorf("%s: no error", source)
		}
	}
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]any{
		`{"a":{"b":[1,1.0,1e0,1.5,true,null,"x"]}}`: map[string]any{"a": map[string]any{"b": []any{int64(1), int64(1), int64(1), 1.5, true, nil, "x"}}},
		`9223372036854775807`:                       int64(9223372036854775807),
		`9223372036854775808`:                       9223372036854775808.0,
		`{}`:                                        map[string]any{},
	} {
		if got, err := expr.Decode([]byte(text)); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for _, bad := range []string{``, `{`, `{} {}`, `{"a":1,"\u0061":2}`, `1e999`, strings.Repeat("[", 300) + strings.Repeat("]", 300), `[1}`} {
		if got, err := expr.Decode([]byte(bad)); err == nil {
			t.Errorf("%.30s: %v", bad, got)
		}
	}
}

// FuzzCompile holds a text that anybody may have written to what the doc says: a program that ends, or an error with a place in it.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{`args.a == 1`, `has(args.a) ? args.b : "x"`, "a\n&& b", `[1,2].map(x, x*2)`, `'\u00e4' == name`, `args.?a[?0].orValue({})`, "((", `"a" in labels`} {
		f.Add(seed, `{"a":1,"b":[true,null]}`)
	}
	e, typed := env(f, &expr.Options{Cost: 10_000}), typedEnv(f)
	f.Add(`out.files.map(f, f.nme)[0].?size`, `{}`)
	f.Fuzz(func(t *testing.T, source, args string) {
		if p, err := typed.Compile(source, expr.Any); err == nil {
			for _, w := range p.Warnings() {
				if w.Offset > len(source) || w.Offset < 0 || w.Message == "" || strings.ContainsAny(w.Message, "\n\x1b") {
					t.Fatalf("%q: %#v", source, w)
				}
			}
		}
		p, err := e.Compile(source, expr.Any)
		if err != nil {
			var wrong *expr.Error
			if !errors.As(err, &wrong) || wrong.Offset > len(source) || wrong.Offset < 0 || wrong.Line > 1+strings.Count(source, "\n") || wrong.Column < 1 || strings.ContainsAny(wrong.Message, "\n\x1b") {
				t.Fatalf("%q: %#v", source, err)
			}
			return
		}
		value, err := expr.Decode([]byte(args))
		if err != nil {
			return
		}
		_, _ = p.Eval(t.Context(), bind(value, value))
	})
}

func BenchmarkEval(b *testing.B) {
	p, err := env(b, nil).Compile(`args.amount > 100 && "private" in labels`, expr.Bool)
	if err != nil {
		b.Fatal(err)
	}
	v := vars(b, `{"amount":250}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Eval(b.Context(), v); err != nil {
			b.Fatal(err)
		}
	}
}
