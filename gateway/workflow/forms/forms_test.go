package forms_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/workflow/forms"
	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/expr"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

func text(s string) spec.Text { return spec.Text{Text: s} }

func opt(s string) *spec.Text { t := text(s); return &t }

// val is a value of a definition, from JSON.
func val(source string) *spec.Value {
	read, err := expr.Decode([]byte(source))
	if err != nil {
		panic(err)
	}
	v := valueOf(read)
	return &v
}

func valueOf(read any) spec.Value {
	switch r := read.(type) {
	case string:
		return spec.Value{Kind: spec.String, Text: text(r)}
	case bool:
		return spec.Value{Kind: spec.Bool, Scalar: r}
	case int64, float64:
		return spec.Value{Kind: spec.Number, Scalar: r}
	case []any:
		v := spec.Value{Kind: spec.List}
		for _, item := range r {
			v.Items = append(v.Items, valueOf(item))
		}
		return v
	case map[string]any:
		v := spec.Value{Kind: spec.Map}
		for name, item := range r {
			v.Members = append(v.Members, spec.Member{Name: text(name), Value: valueOf(item)})
		}
		return v
	}
	return spec.Value{Kind: spec.Null}
}

func from(source string) *spec.Source { return &spec.Source{Value: val(source)} }

func compile(t testing.TB, fields ...spec.Field) *forms.Form {
	t.Helper()
	f, problems := forms.Compile(template.Any(), &spec.Form{Title: *val(`"Order for ${{ inputs.who }}"`), Fields: fields})
	if len(problems) > 0 {
		t.Fatalf("compile: %+v", problems)
	}
	return f
}

func values(t testing.TB, source string) map[string]any {
	t.Helper()
	read, err := expr.Decode([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return read.(map[string]any)
}

func env(t testing.TB) forms.Env {
	t.Helper()
	return forms.Env{Vars: values(t, `{"inputs": {"who": "Ann", "bad": "x y", "mail": "ann@example.org", "none": null}, "steps": {}, "env": {}, "run": {}}`)}
}

func next(t testing.TB, f *forms.Form, e forms.Env, s *forms.State) *forms.Ask {
	t.Helper()
	ask, err := f.Next(t.Context(), e, s)
	if err != nil {
		t.Fatal(err)
	}
	return ask
}

func fieldNames(ask *forms.Ask) string {
	if ask == nil {
		return ""
	}
	names := []string{}
	for _, q := range ask.Fields {
		names = append(names, q.Name)
	}
	return strings.Join(names, " ")
}

func answer(t testing.TB, f *forms.Form, e forms.Env, s *forms.State, source string) string {
	t.Helper()
	problems, err := f.Answer(t.Context(), e, s, values(t, source))
	if err != nil {
		t.Fatal(err)
	}
	said := []string{}
	for _, p := range problems {
		said = append(said, p.Error())
	}
	return strings.Join(said, "\n")
}

func result(t testing.TB, f *forms.Form, e forms.Env, s *forms.State) string {
	t.Helper()
	object, err := f.Result(t.Context(), e, s)
	if err != nil {
		t.Fatal(err)
	}
	out, err := expr.JSON(object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Each row is a field, an answer, and what it comes to, or what is said of it.
func TestAnswerTypes(t *testing.T) {
	choice := spec.Field{Type: "choice", Options: from(`["red", "green", 3, {"value": "b", "title": "Deep blue"}]`)}
	choices := spec.Field{Type: "choices", Options: choice.Options, MinLength: 1, MaxLength: 2}
	bounded := spec.Field{Type: "integer", Min: val(`1`), Max: val(`10`)}
	for _, row := range []struct {
		field        spec.Field
		answer, want string
	}{
		{spec.Field{Type: "string"}, `" a b "`, `" a b "`},
		{spec.Field{Type: "string"}, `12`, `"12"`},
		{spec.Field{Type: "string"}, `true`, `f: it is true or false; a text is wanted`},
		{spec.Field{Type: "string"}, `"a\nb"`, `f: it has line breaks or control characters; one line of text is wanted`},
		{spec.Field{Type: "string"}, `"  "`, `f: it needs an answer`},
		{spec.Field{Type: "text"}, `"a\r\nb\tc"`, `"a\nb\tc"`},
		{spec.Field{Type: "text"}, `"a\u001b[1mb"`, `f: it has control characters; plain text is wanted`},
		{spec.Field{Type: "string", MinLength: 2, MaxLength: 3}, `"äöü"`, `"äöü"`},
		{spec.Field{Type: "string", MinLength: 2, MaxLength: 3}, `"äöüß"`, `f: it has 4 characters; at most 3 are wanted`},
		{spec.Field{Type: "string", MinLength: 2}, `"ä"`, `f: it has 1 characters; at least 2 are wanted`},
		{spec.Field{Type: "string", Pattern: opt(`[A-Z]{2}-\d+`)}, `"AB-12"`, `"AB-12"`},
		{spec.Field{Type: "string", Pattern: opt(`[A-Z]{2}-\d+`)}, `"xAB-12"`, `f: it does not match the pattern; the pattern is [A-Z]{2}-\d+`},
		{spec.Field{Type: "string", Pattern: opt(`a|b`), Message: "a or b, please"}, `"ab"`, `f: a or b, please`},
		{spec.Field{Type: "integer"}, `" -12 "`, `-12`},
		{spec.Field{Type: "integer"}, `12.0`, `12`},
		{spec.Field{Type: "integer"}, `12.5`, `f: it is a number; a whole number is wanted, such as 12`},
		{spec.Field{Type: "integer"}, `"1,000"`, `f: "1,000" is not a whole number; a whole number is wanted, such as 12`},
		{spec.Field{Type: "integer"}, `1e300`, `f: it is a number; a whole number is wanted, such as 12`},
		{bounded, `"10"`, `10`},
		{bounded, `11`, `f: it is out of range; wanted is 1 to 10`},
		{spec.Field{Type: "number"}, `"2.50"`, `2.5`},
		{spec.Field{Type: "number", Max: val(`2.5`)}, `3`, `f: it is out of range; wanted is at most 2.5`},
		{spec.Field{Type: "number"}, `"nan"`, `f: "nan" is not a number; a number is wanted, such as 2.5`},
		{spec.Field{Type: "number"}, `"0x10p0"`, `f: "0x10p0" is not a number; a number is wanted, such as 2.5`},
		{spec.Field{Type: "boolean"}, `"Yes"`, `true`},
		{spec.Field{Type: "boolean"}, `false`, `false`},
		{spec.Field{Type: "boolean"}, `"nope"`, `f: "nope" is neither yes nor no; yes or no is wanted`},
		{spec.Field{Type: "boolean"}, `1`, `f: it is a number; yes or no is wanted`},
		{spec.Field{Type: "date", Min: val(`"2026-01-01"`)}, `"2026-02-28"`, `"2026-02-28"`},
		{spec.Field{Type: "date"}, `"2026-02-29"`, `f: "2026-02-29" is not a date; a date is written as 2026-11-22: year, month, day`},
		{spec.Field{Type: "date", Min: val(`"2026-01-01"`)}, `"2025-12-31"`, `f: it is out of range; wanted is at least 2026-01-01`},
		{spec.Field{Type: "datetime", Max: val(`"2026-01-01T00:00:00Z"`)}, `"2026-01-01T01:00:00+02:00"`, `"2026-01-01T01:00:00+02:00"`},
		{spec.Field{Type: "datetime"}, `"2026-01-01T01:00:00"`, `f: "2026-01-01T01:00:00" is not a time; a time is written as 2026-11-22T09:30:00Z, with Z or an offset such as +02:00`},
		{spec.Field{Type: "email"}, `" ann@example.org"`, `"ann@example.org"`},
		{spec.Field{Type: "email"}, `"Ann <ann@example.org>"`, `f: "Ann <ann@example.org>" is not an email address; an address is wanted, such as ann@example.org`},
		{spec.Field{Type: "uri"}, `"https://example.org/a?b#c"`, `"https://example.org/a?b#c"`},
		{spec.Field{Type: "uri"}, `"example.org/a"`, `f: "example.org/a" is not an absolute URI; one is wanted, such as https://example.org/page`},
		{choice, `"red"`, `"red"`},
		{choice, `"3"`, `3`},
		{choice, `3.0`, `3`},
		{choice, `"deep BLUE"`, `"b"`},
		{choice, `"gren"`, `f: "gren" is none of the options; did you mean "green"?`},
		{choice, `"mauve"`, `f: "mauve" is none of the options; the options are red, green, 3, b`},
		{choice, `["red"]`, `f: "[\"red\"]" is none of the options; the options are red, green, 3, b`},
		{choices, `"red, 3"`, `["red",3]`},
		{choices, `["b", "b"]`, `["b"]`},
		{choices, `"[\"red\", 3]"`, `["red",3]`},
		{choices, `["red", "green", "b"]`, `f: it has 3 choices; at most 2 are wanted`},
		{choices, `[]`, `f: it needs an answer`},
		{spec.Field{Type: "string", Rule: opt(`value == inputs.who`)}, `"Ann"`, `"Ann"`},
		{spec.Field{Type: "string", Rule: opt(`value != form.f`)}, `"Bob"`, `f: it does not fit; this must hold: value != form.f`},
		{spec.Field{Type: "string", Rule: opt(`value == "x"`), Message: "only x"}, `"y"`, `f: only x`},
	} {
		row.field.Name, row.field.Required = text("f"), true
		f, s := compile(t, row.field), &forms.State{}
		got := answer(t, f, env(t), s, `{"f": `+row.answer+`}`)
		if got == "" {
			got = strings.TrimSuffix(strings.TrimPrefix(result(t, f, env(t), s), `{"f":`), "}")
		} else if _, err := f.Result(t.Context(), env(t), s); err == nil {
			t.Errorf("%s: a wrong answer is taken", row.answer)
		}
		if got != row.want {
			t.Errorf("%s %s\n got: %s\nwant: %s", row.field.Type, row.answer, got, row.want)
		}
	}
}

// order is a form whose later fields depend on those before.
func order(t testing.TB) *forms.Form {
	t.Helper()
	return compile(t,
		spec.Field{Name: text("kind"), Type: "choice", Required: true, Options: from(`["book", "other"]`)},
		spec.Field{Name: text("detail"), Type: "string", Required: true, If: opt(`form.kind == "other"`)},
		spec.Field{Name: text("size"), Type: "choice", Required: true, Options: from(`"${{ form.kind == 'book' ? ['A4', 'A5'] : ['S', 'A4'] }}"`), Default: val(`"A4"`)},
		spec.Field{Name: text("note"), Type: "string"},
		spec.Field{Name: text("mail"), Type: "email", Required: true, From: from(`"${{ inputs.mail }}"`)},
	)
}

func TestDependents(t *testing.T) {
	f, e, s := order(t), env(t), &forms.State{}
	if ask := next(t, f, e, s); fieldNames(ask) != "kind note" || ask.Title != "Order for Ann" || ask.Filled["mail"] != "ann@example.org" {
		t.Fatalf("first: %+v", ask)
	}
	if said := answer(t, f, e, s, `{"kind": "other", "detail": "a pen", "size": "A5", "colour": 1, "Note": ""}`); said !=
		"size: \"A5\" is none of the options; the options are S, A4\nNote: there is no such field; did you mean \"note\"?\ncolour: there is no such field; the fields are kind, detail, size, note, mail" {
		t.Errorf("said: %s", said)
	}
	if ask := next(t, f, e, s); fieldNames(ask) != "size note" || ask.Fields[0].Default != "A4" || ask.Filled["detail"] != "a pen" {
		t.Errorf("what was right is kept: %+v", ask)
	}
	if said := answer(t, f, e, s, `{"size": "S"}`); said != "" {
		t.Error(said)
	}
	if got := result(t, f, e, s); got != `{"detail":"a pen","kind":"other","mail":"ann@example.org","note":null,"size":"S"}` {
		t.Error(got)
	}
	// another kind: detail does not apply, and the size is none of its options any more
	if said := answer(t, f, e, s, `{"kind": "book"}`); said != "" {
		t.Error(said)
	}
	ask := next(t, f, e, s)
	if fieldNames(ask) != "size" || ask.Fields[0].Problem != `S: "S" is none of the options; the options are A4, A5` || s.Answers["detail"] != nil {
		t.Fatalf("changed: %+v %+v", ask, s)
	}
	if said := answer(t, f, e, s, `{"size": "A5", "mail": "bob@example.org", "detail": "x"}`); said != "detail: it does not apply with the current answers" {
		t.Error(said)
	}
	if got := result(t, f, e, s); got != `{"kind":"book","mail":"bob@example.org","note":null,"size":"A5"}` {
		t.Error(got)
	}
	// null takes an answer back
	if said := answer(t, f, e, s, `{"mail": null, "size": null}`); said != "" {
		t.Error(said)
	}
	if ask := next(t, f, e, s); fieldNames(ask) != "size" || ask.Filled["mail"] != "ann@example.org" {
		t.Errorf("taken back: %+v", ask)
	}
}

func TestFrom(t *testing.T) {
	e := env(t)
	f := compile(t,
		spec.Field{Name: text("a"), Type: "string", Required: true, From: from(`"${{ inputs.who }}"`), Confirm: true},
		spec.Field{Name: text("b"), Type: "email", Required: true, From: from(`"${{ inputs.bad }}"`)},
		spec.Field{Name: text("c"), Type: "string", Required: true, From: from(`"${{ inputs.none }}"`), Default: val(`"${{ form.a }}!"`)},
		spec.Field{Name: text("d"), Type: "string", Required: true, From: from(`"${{ form.a }}"`)},
	)
	s := &forms.State{}
	ask := next(t, f, e, s)
	if fieldNames(ask) != "a b" || ask.Fields[0].Default != "Ann" || ask.Fields[1].Problem == "" {
		t.Fatalf("%+v", ask)
	}
	if said := answer(t, f, e, s, `{"a": "Bob", "b": "b@example.org"}`); said != "" {
		t.Fatal(said)
	}
	if ask := next(t, f, e, s); fieldNames(ask) != "c" || ask.Fields[0].Default != "Bob!" || ask.Filled["d"] != "Bob" {
		t.Fatalf("%+v", ask)
	}
	none := compile(t, spec.Field{Name: text("a"), Type: "string", Required: true, From: from(`"${{ inputs.who }}"`)})
	if ask := next(t, none, e, &forms.State{}); ask != nil {
		t.Errorf("nobody has to be asked, and is: %+v", ask)
	}
	optional := compile(t, spec.Field{Name: text("a"), Type: "string"})
	empty := &forms.State{}
	if ask := next(t, optional, e, empty); fieldNames(ask) != "a" {
		t.Errorf("an optional field is asked once: %+v", ask)
	}
	if said := answer(t, optional, e, empty, `{}`); said != "" || next(t, optional, e, empty) != nil {
		t.Errorf("and left empty then: %s %+v", said, empty)
	}
}

func TestTools(t *testing.T) {
	e := env(t)
	var calls []string
	e.Call = func(_ context.Context, c forms.Call) (any, error) {
		calls = append(calls, c.Key+" "+c.Tool+" "+string(c.Args))
		if strings.Contains(string(c.Args), "XX") {
			return nil, &tool.Error{Kind: tool.Failed, Message: "no such country"}
		}
		return values(t, `{"cities": [{"value": 1, "title": "A\u001b[31m one"}, {"value": 2, "title": "Two"}, {"value": 1, "title": "again"}]}`), nil
	}
	cities := &spec.Source{Tool: &spec.Tool{Name: text("geo.cities"), With: *val(`{"country": "${{ form.country }}"}`)}, Output: val(`"${{ output.cities }}"`)}
	f := compile(t,
		spec.Field{Name: text("country"), Type: "string", Required: true},
		spec.Field{Name: text("city"), Type: "choice", Required: true, Options: cities},
	)
	s := &forms.State{}
	if ask := next(t, f, e, s); fieldNames(ask) != "country" || len(calls) > 0 {
		t.Fatalf("%+v %v", ask, calls)
	}
	if said := answer(t, f, e, s, `{"country": "DE", "city": "2"}`); said != "" {
		t.Fatal(said)
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var again forms.State // as after a crash
	if err := json.Unmarshal(data, &again); err != nil || !cmp.Equal(&again, s) {
		t.Fatalf("%v %s", err, cmp.Diff(&again, s))
	}
	if got := result(t, f, e, &again); got != `{"city":2,"country":"DE"}` {
		t.Error(got)
	}
	if said := answer(t, f, e, &again, `{"country": "FR", "city": null}`); said != "" {
		t.Error(said)
	}
	want := []forms.Option{{Value: int64(1), Title: "A one"}, {Value: int64(2), Title: "Two"}}
	if ask := next(t, f, e, &again); !cmp.Equal(ask.Fields[0].Options, want) {
		t.Errorf("%+v", ask)
	}
	if picked, ok := again.Fetched["city.options"].Value.([]any); !ok || len(picked) != 3 {
		t.Errorf("more is kept of a result than was picked: %+v", again.Fetched)
	}
	if !cmp.Equal(calls, []string{`city.options geo.cities {"country":"DE"}`, `city.options[1] geo.cities {"country":"FR"}`}) {
		t.Errorf("calls: %q", calls)
	}
	_, err = f.Answer(t.Context(), e, &again, values(t, `{"country": "XX"}`))
	if failed, ok := errors.AsType[*tool.Error](err); !ok || failed.Kind != tool.Failed {
		t.Errorf("a tool's error: %v", err)
	}
}

// What is wrong with expressions is said where they stand; what is wrong with keys, package spec has said before.
func TestCompileProblems(t *testing.T) {
	for want, field := range map[string]spec.Field{
		"the pattern cannot be read: missing closing )":                     {Type: "string", Pattern: opt("(")},
		`there is no valu; did you mean "value"?`:                           {Type: "string", Rule: opt("valu == 1")},
		`there is no value; the variables are`:                              {Type: "string", If: opt("value == 1")},
		"the value has type string":                                         {Type: "string", If: opt(`"x"`)},
		"max is below min":                                                  {Type: "date", Min: val(`"2026-11-22"`), Max: val(`"2026-01-01"`)},
		`this is not a value of the field: "soon" is not a date`:            {Type: "date", Min: val(`"soon"`)},
		"the default does not fit the field: it is out of range":            {Type: "integer", Max: val(`3`), Default: val(`"4"`)},
		`the default does not fit the field: "c" is none of the options`:    {Type: "choice", Options: from(`["a", "b"]`), Default: val(`"c"`)},
		"the options of field f: number 2 is invalid":                       {Type: "choice", Options: from(`["a", " "]`)},
		"the default does not fit the field: it does not match the pattern": {Type: "string", Pattern: opt("a+"), Default: val(`"b"`)},
	} {
		field.Name = text("f")
		f, problems := forms.Compile(template.Any(), &spec.Form{Fields: []spec.Field{field}})
		if f != nil || len(problems) == 0 || !strings.HasPrefix(problems[0].Message, want) {
			t.Errorf("%s: %+v", want, problems)
		}
	}
}

// The form of docs/how-to/workflows.md is one, and asks what is said there.
func TestDocs(t *testing.T) {
	var block string
	for _, e := range testutil.Examples(t, "docs/how-to/workflows.md") {
		if e.Section == "Forms" && e.Language == "yaml" {
			block = e.Text
		}
	}
	d, err := spec.Parse("docs.yaml", []byte("name: docs\nsteps:\n"+block), nil)
	if err != nil {
		t.Fatal(err)
	}
	do, ok := d.Steps[0].Do.(*spec.Form)
	if !ok {
		t.Fatalf("%T", d.Steps[0].Do)
	}
	f, problems := forms.Compile(template.Any(), do)
	if len(problems) > 0 {
		t.Fatalf("%+v", problems)
	}
	e, s := env(t), &forms.State{}
	e.Call = func(context.Context, forms.Call) (any, error) { return values(t, `{"cities": ["Ulm"]}`), nil }
	if ask := next(t, f, e, s); fieldNames(ask) != "country days mail until notes" || ask.Fields[2].Default != "ann@example.org" {
		t.Errorf("first: %+v", ask)
	}
	said := answer(t, f, e, s, `{"country": "DE", "city": "Ulm", "days": 20, "visa": "x", "mail": "a@b.org", "until": "2025-01-01"}`)
	if said != "visa: two letters and six digits\nuntil: it must be in the future" {
		t.Error(said)
	}
	if ask := next(t, f, e, s); fieldNames(ask) != "visa until notes" {
		t.Errorf("then: %+v", ask)
	}
}

// All answers together are bounded, and one that is replaced does not count twice.
func TestAnswersTooLong(t *testing.T) {
	var fields []spec.Field
	for i := range 17 {
		fields = append(fields, spec.Field{Name: text(fmt.Sprintf("f%02d", i)), Type: "text", Required: true})
	}
	f, e, s := compile(t, fields...), env(t), &forms.State{}
	for i := range 17 {
		want := ""
		if i == 16 {
			want = "f16: the answers are too long together; a form has up to 1 MiB of them"
		}
		if said := answer(t, f, e, s, fmt.Sprintf(`{"f%02d": %q}`, i, strings.Repeat("x", 64<<10))); said != want {
			t.Errorf("%d: %s", i, said)
		}
	}
	if said := answer(t, f, e, s, fmt.Sprintf(`{"f00": %q}`, strings.Repeat("y", 64<<10))); said != "" {
		t.Error(said)
	}
	if said := answer(t, f, e, s, fmt.Sprintf(`{"f00": %q}`, strings.Repeat("y", 64<<10+1))); said != "f00: it is too long; a text has up to 64 KiB" {
		t.Error(said)
	}
}

// Misspelt fields, and uses of a field as what it is not, are found before anything is asked.
func TestCompileShapes(t *testing.T) {
	for want, source := range map[string]string{
		`there is no member amonut; did you mean "amount"?`:            `form.amonut > 1`,
		"a field sees only the fields before it, and later is not one": `form.later == "x"`,
		"a field sees only the fields before it, and self is not one":  `form.self == "x"`,
		"> cannot be applied to (int, string)":                         `form.amount > "1"`,
		"":                                                             `form.amount > 1 && form.note != null && form.kind != null`,
		"the value has type int, not bool":                             `form.amount`,
		"there is no member x; the members are amount, note, kind":     `form.x`,
	} {
		_, problems := forms.Compile(template.Any(), &spec.Form{Fields: []spec.Field{
			{Name: text("amount"), Type: "integer", Required: true},
			{Name: text("note"), Type: "string"},
			{Name: text("kind"), Type: "string", Required: true, If: opt(`form.amount > 1`)},
			{Name: text("self"), Type: "string", Required: true, If: opt(source)},
			{Name: text("later"), Type: "string", Required: true, Rule: opt(`value.size() > 1 && form.self != form.later`)},
		}})
		said := ""
		if len(problems) > 0 {
			said = problems[0].Message
		}
		if said != want {
			t.Errorf("%s: %s; want %s", source, said, want)
		}
	}
	if s := forms.Shape([]spec.Field{{Name: text("a"), Type: "choices", Required: true, If: opt("true")}}); !s.Fields[0].Optional || s.Fields[0].Shape.Type != expr.List {
		t.Errorf("%+v", s)
	}
}
