package expr_test

import (
	"errors"
	"strings"
	"testing"

	"sallyport/internal/expr"
)

func typedEnv(t testing.TB) *expr.Env {
	t.Helper()
	text, number := &expr.Shape{Type: expr.String}, &expr.Shape{Type: expr.Int}
	file := &expr.Shape{Type: expr.Map, Fields: []expr.Field{{Name: "name", Shape: text}, {Name: "size", Shape: number}, {Name: "price", Shape: &expr.Shape{Type: expr.Double}}}}
	seen := &expr.Shape{Type: expr.Map, Open: true, Fields: []expr.Field{{Name: "content", Shape: text}}}
	out := &expr.Shape{Type: expr.Map, Fields: []expr.Field{{Name: "files", Shape: &expr.Shape{Type: expr.List, Elem: file}}, {Name: "seen", Shape: seen},
		{Name: "counts", Shape: &expr.Shape{Type: expr.Map, Elem: number}}, {Name: "any"}},
		Absent: func(name string) string {
			if name == "hidden" {
				return "hidden cannot be seen from here"
			}
			return ""
		}}
	base, err := expr.New([]expr.Var{{Name: "env", Type: expr.Any}}, &expr.Options{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	e, err := base.With(expr.Var{Name: "out", Type: expr.Any, Shape: out})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What is known of variables finds what is wrong before there is a value, and nothing that would work.
func TestShapes(t *testing.T) {
	e := typedEnv(t)
	for _, tc := range []struct {
		source string
		offset int
		wrong  string // begins with "?" for a warning
	}{
		{`out.fils`, 4, `there is no member fils; did you mean "files"?`},
		{`out.hidden.x`, 4, "hidden cannot be seen from here"},
		{`out.files[0].nam`, 13, `did you mean "name"?`},
		{`out["filse"]`, 4, `did you mean "files"?`},
		{`out.files.map(f, f.nme)`, 19, `did you mean "name"?`},
		{`out.files.filter(f, f.size > 1)[0].nme`, 35, `did you mean "name"?`},
		{`out.files.map(f, {"n": f.name})[0].other`, 35, "the members are n"},
		{`out.files.exists(f, f.name > 3)`, 27, "> cannot be applied to (string, int)"},
		{`out.files.all(i, f, i < f.name.size() && f.szie > 0)`, 43, `did you mean "size"?`},
		{`cel.bind(f, out.files[0], f.nme)`, 28, `did you mean "name"?`},
		{`out.files.sortBy(f, f.size)[0].nme`, 31, `did you mean "name"?`},
		{`[out.files[0], out.files[1]].map(f, f.nme)`, 38, `did you mean "name"?`},
		{`(env.x ? out.files[0] : out.files[1]).nme`, 38, `did you mean "name"?`},
		{`out.seen.contnet`, 9, `?no member contnet was seen so far; did you mean "content"?`},
		{`has(out.seen.more)`, 0, ""},
		{`out.seen.?more.orValue(1)`, 0, ""},
		{`out.?fils.orValue([])`, 5, `?there is no member fils`},
		{`out.files.name`, 9, "a value of type list(dyn) has no members"},
		{`out.files[0].name.x`, 17, "a value of type string has no members"},
		{`out.counts.whatever + "a"`, 20, "+ cannot be applied to (int, string)"},
		{`out.counts.map(k, k + 1)`, 20, "+ cannot be applied to (string, int)"},
		{`out.files[0].price * 2`, 19, "?a number from JSON may be whole"},
		{`"a" + out.files[0].price`, 4, "?a number is not text"},
		{`double(out.files[0].price) * 2.0 + 1.5`, 0, ""},
		{`out.files[0].name == null || null != out.files || out.files[0].size == 1.0`, 0, ""},
		{`env.x ? out.files[0].name : null`, 0, ""},
		{`env.x ? out.files[0].size : out.files[0].name`, 0, ""},
		{`env.x ? "none" : out.files`, 0, ""},
		{`out.files[0].size == "a"`, 18, "== cannot be applied to (int, string)"},
		{"out.files[0].size\n  + out.files[0].name", 20, "+ cannot be applied to (int, string)"},
		{`out.files[0].size > 1.5 && out.files.size() > 0 && out.any.x.y[3] == 1`, 0, ""},
		{`out == {} ? out : {"a": 1}`, 0, ""},
		{`out.files + [1] == [] || "files" in out || size(out) > 1`, 0, ""},
		{`env.what.ever + 1 > text(out).size()`, 0, ""},
		{`out.map(k, out[k])`, 0, ""},
		{`out == null || null != out.files || out.files[0].name == null || {"a": 1} == null || 1 == null`, 0, ""},
		{`out.files == null && out.fils == null`, 25, `did you mean "files"?`},
		{`out.files[0].size == null && out.files[0].size > "a"`, 47, "> cannot be applied to (int, string)"},
		{`out == null + 1`, 12, "+ cannot be applied to (null, int)"},
	} {
		p, err := e.Compile(tc.source, expr.Any)
		var got *expr.Error
		warned := ""
		if !errors.As(err, &got) && len(p.Warnings()) > 0 {
			got, warned = p.Warnings()[0], "?"
		}
		switch {
		case got == nil && tc.wrong != "", got != nil && tc.wrong == "":
			t.Errorf("%s: %+v, want %q", tc.source, got, tc.wrong)
		case got != nil && (!strings.Contains(warned+got.Message, tc.wrong) || tc.wrong[0] == '?' && warned == "" || tc.offset > 0 && got.Offset != tc.offset):
			t.Errorf("%s: %s%d %s, want %d %s", tc.source, warned, got.Offset, got.Message, tc.offset, tc.wrong)
		}
	}
}

func TestShapeOf(t *testing.T) {
	e := typedEnv(t)
	for source, want := range map[string]string{
		`out.files[0].name`: "string", `out.files.map(f, f.size)`: "list of int", `out.files.filter(f, true)`: "list of map", `{"a": 1}`: "map",
		`out.files[0].size + 1`: "int", `out.any`: "any", `env.x == 1`: "bool", `"a,b".split(",")`: "list of string", `env.x ? 1 : 2`: "int", `out.files[0].price`: "double", `text(env)`: "string",
	} {
		p, err := e.Compile(source, expr.Any)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		got := "any"
		if s := p.Shape(); s != nil {
			if got = string(s.Type); s.Elem != nil && s.Type == expr.List {
				got += " of " + string(s.Elem.Type)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
	for source, want := range map[string]expr.Type{`out.files`: expr.Bool, `out.seen.content`: expr.List, `out.files[0].size`: expr.String} {
		if _, err := e.Compile(source, want); err == nil || !strings.Contains(err.Error(), "not "+string(want)) {
			t.Errorf("%s: %v", source, err)
		}
	}
}
