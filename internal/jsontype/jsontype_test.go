package jsontype_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/jsontype"
)

func of(t testing.TB, value string) jsontype.Shape {
	t.Helper()
	s, err := jsontype.Of([]byte(value))
	if err != nil {
		t.Fatalf("%.200s: %v", value, err)
	}
	return s
}

func merged(t testing.TB, values ...string) (all jsontype.Shape) {
	t.Helper()
	for _, value := range values {
		all = jsontype.Merge(all, of(t, value))
	}
	return all
}

// short writes a shape as one would say it.
func short(s jsontype.Shape) string {
	if s.Any {
		return "any"
	}
	var parts []string
	for i, name := range []string{"null", "bool", "int", "number", "string", "list", "object", "blob"} {
		kind := jsontype.Kind(1) << i
		switch {
		case s.Kinds&kind == 0:
		case kind == jsontype.String && s.Format != "":
			parts = append(parts, s.Format)
		case kind == jsontype.List && s.Elem != nil:
			parts = append(parts, "["+short(*s.Elem)+"]")
		case kind == jsontype.Object && s.Values != nil:
			parts = append(parts, "map("+short(*s.Values)+")")
		case kind == jsontype.Object:
			parts = append(parts, "{"+shortFields(s.Fields)+"}")
		default:
			parts = append(parts, name)
		}
	}
	return strings.Join(parts, "|")
}

func shortFields(fields []jsontype.Field) string {
	var parts []string
	for _, f := range fields {
		mark := ": "
		if f.Optional {
			mark = "?: "
		}
		parts = append(parts, f.Name+mark+short(f.Shape))
	}
	return strings.Join(parts, ", ")
}

func TestMerge(t *testing.T) {
	for _, test := range []struct {
		want   string
		values []string
	}{
		{"", nil},
		{"int", []string{"1", "-2", "123456789012345678901234567890"}},
		{"number", []string{"1", "1.0", "1"}},
		{"number", []string{"1", "1e5"}},
		{"null|string", []string{`"a"`, "null"}},
		{"list", []string{"[]", "[]"}},
		{"[int]", []string{"[]", "[1]", "[]"}},
		{"{a: int, b?: string}", []string{`{"a":1}`, `{"a":2,"b":"x"}`}},
		{"{a?: int}", []string{`{}`, `{"a":2}`}},
		{"{a?: int}", []string{`{"a":2}`, `{}`, `{"a":2}`}},
		{"{a: [{b?: null|int}]}", []string{`{"a":[{"b":1},{}]}`, `{"a":[{"b":null}]}`, `{"a":[]}`}},
		{"map(int|string)", []string{`{"name":"x"}`, `{"a@b.c":1}`}},
		{"map(int|string)", []string{`{"a@b.c":1}`, `{"name":"x"}`, `{}`}},
		{"int|[string]|{a: int}", []string{`{"a":1}`, `["x"]`, `7`}},
		{"{a: int}", []string{`{"a":1,"a":2}`}},
		{"{a: int|string}", []string{`{"a":1,"a":"x"}`}},
		{"{a: int}", []string{"{\"\\u0061\":1}", `{"a":2}`}},
		{"uuid", []string{`"a3bb189e-8bf9-3888-9912-ace4e654baf8"`, `"A3BB189E-8BF9-3888-9912-ACE4E654BAF8"`}},
		{"string", []string{`"a3bb189e-8bf9-3888-9912-ace4e654baf8"`, `""`}},
		{"string", []string{`""`, `"2024-01-01"`, `"2024-01-01"`}},
		{"null|int|date", []string{`"2024-01-01"`, `null`, `7`}},
		{"string", []string{`"2024-01-01"`, `"2024-01-01T10:00:00Z"`}},
	} {
		if got := short(merged(t, test.values...)); got != test.want {
			t.Errorf("%q: %s, want %s", test.values, got, test.want)
		}
	}
}

func TestFormats(t *testing.T) {
	for format, values := range map[string]string{
		"date-time": "2024-01-01T10:00:00Z 2024-01-01T10:00Z 2024-01-01t10:00:00.123456+02:00 2024-01-01T10:00:00 2024-01-01T10:00:00-0700",
		"date":      "2024-01-01 1999-12-31",
		"time":      "10:00:00 10:00:00Z 10:00:00.5+01:00 10:00:00-01:00",
		"uri":       "https://a.b/c?d=e#f file:///x postgres://u@h:5/db git+ssh://x",
		"email":     "a@b.cd first.last+tag@sub.example.org",
		"uuid":      "a3bb189e-8bf9-3888-9912-ace4e654baf8",
		"string": "hello 2024 2024-1-1 2024-01-01x 2024-01-01T 2024-01-01T10 2024-01-01T10:00:00. 10:00 1:2:3 https:// ://x 1a://x " +
			"a@b @b.c a@ a@b@c.d a@.. a3bb189e8bf938889912ace4e654baf8 a3bb189e-8bf9-3888-9912-ace4e654bafg mailto:a@b -",
	} {
		for value := range strings.FieldsSeq(values) {
			if got := short(of(t, `"`+value+`"`)); format != "string" && got != format || format == "string" && got != "string" && value != "mailto:a@b" {
				t.Errorf("%s: %s, want %s", value, got, format)
			}
		}
	}
	for _, value := range []string{`"https://a.b/c d"`, `"a b@c.de"`, `"<a@b.cd>"`, `"https://` + strings.Repeat("x", 5000) + `"`, `"http://a\nb"`} {
		if got := short(of(t, value)); got != "string" {
			t.Errorf("%.40s: %s", value, got)
		}
	}
}

// TestManyValues: what is long is sampled, what is deep or wide is bounded.
func TestManyValues(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"a long list", "[" + strings.Repeat(`{"a":1},`, 200_000) + `{"a":1}]`, "[{a: int}]"},
		{"a long list with another end", "[" + strings.Repeat(`1,`, 64*1000) + `"x"]`, "[int|string]"},
		{"a deep list", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), strings.Repeat("[", 12) + "any" + strings.Repeat("]", 12)},
		{"a deep object", strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), strings.Repeat("{a: ", 12) + "any" + strings.Repeat("}", 12)},
		{"many keys", "{" + many(100_000, func(i int) string { return fmt.Sprintf(`"%s":1`, word(i)) }) + "}", "map(int)"},
		{"many keys of many kinds", "{" + many(129, func(i int) string { return fmt.Sprintf(`"%s":%s`, word(i), []string{"1", `"x"`}[i%2]) }) + "}", "map(int|string)"},
	} {
		if got := short(of(t, test.value)); got != test.want {
			t.Errorf("%s: %.200s, want %s", test.name, got, test.want)
		}
	}
	wide := short(of(t, `{`+many(100, func(i int) string {
		if i == 99 {
			return `"z":1`
		}
		return fmt.Sprintf(`"%s":{%s}`, word(i), many(100, func(j int) string { return fmt.Sprintf(`"%s":%s`, word(j+i), []string{"1", `"x"`}[j%2]) }))
	})+`}`))
	if !strings.HasPrefix(wide, "{aa: any, ab: any, ") {
		t.Errorf("a wide object: %.200s", wide)
	}
}

func many(n int, one func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = one(i)
	}
	return strings.Join(parts, ",")
}

// word is the i-th of many names without a digit.
func word(i int) string {
	name := ""
	for i += 26; i > 0; i /= 26 {
		name = string(rune('a'+i%26)) + name
	}
	return strings.Replace(name, "b", "a", 1)
}

func TestNotJSON(t *testing.T) {
	for _, bad := range []string{"", " ", "{", "[1,]", `{"a"}`, "1 2", "nul", `"`, "\x00", strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)} {
		if s, err := jsontype.Of([]byte(bad)); !errors.Is(err, jsontype.ErrNotJSON) {
			t.Errorf("%.20q: %v, %v", bad, s, err)
		}
	}
	if _, err := jsontype.Of([]byte(strings.Repeat(" ", 16<<20) + "1")); !errors.Is(err, jsontype.ErrTooLong) {
		t.Error(err)
	}
}

// TestCases reads the values that codegen and the guest write as text.
func TestCases(t *testing.T) {
	data, err := os.ReadFile("testdata/shapes.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Value json.RawMessage }
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		sound(t, of(t, string(c.Value)))
	}
}

// sound checks that a shape survives the store, and is its own merger.
func sound(t testing.TB, s jsontype.Shape) {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back jsontype.Shape
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatalf("%v: %.300s", err, data)
	}
	if diff := cmp.Diff(s, back); diff != "" {
		t.Fatalf("through the store (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(s, jsontype.Merge(s, s)); diff != "" {
		t.Fatalf("merged with itself (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(s, jsontype.Merge(s, jsontype.Shape{})); diff != "" {
		t.Fatalf("merged with nothing (-before +after):\n%s", diff)
	}
}

// TestLaws: any order of merging comes to the same.
func TestLaws(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for range 5_000 {
		a, b, c := of(t, value(random, 3)), of(t, value(random, 3)), of(t, value(random, 3))
		laws(t, a, b, c)
		if t.Failed() {
			return
		}
	}
}

func laws(t testing.TB, a, b, c jsontype.Shape) {
	t.Helper()
	ab := jsontype.Merge(a, b)
	sound(t, ab)
	if diff := cmp.Diff(ab, jsontype.Merge(b, a)); diff != "" {
		t.Errorf("%s and %s do not commute:\n%s", short(a), short(b), diff)
	}
	if diff := cmp.Diff(jsontype.Merge(ab, c), jsontype.Merge(a, jsontype.Merge(b, c))); diff != "" {
		t.Errorf("%s, %s, %s do not associate:\n%s", short(a), short(b), short(c), diff)
	}
	if diff := cmp.Diff(ab, jsontype.Merge(ab, a)); diff != "" {
		t.Errorf("%s is not in %s:\n%s", short(a), short(ab), diff)
	}
}

// value is a random JSON value.
func value(random *rand.Rand, depth int) string {
	scalars := []string{"null", "true", "1", "1.5", `"x"`, `"2024-01-01"`, `"a@b.cd"`, `"https://a.b"`, "[]", "{}"}
	kind := random.IntN(len(scalars) + 6)
	if kind < len(scalars) || depth == 0 {
		return scalars[kind%len(scalars)]
	}
	if kind%2 == 0 {
		return "[" + many(random.IntN(4), func(int) string { return value(random, depth-1) }) + "]"
	}
	n := random.IntN(5)
	if random.IntN(10) == 0 {
		n = 10 + random.IntN(20)
	}
	return "{" + many(n, func(i int) string {
		key := word(random.IntN(24))
		if random.IntN(40) == 0 {
			key = []string{"a@b.c", "2024-01-01", "x/y", ""}[random.IntN(4)]
		}
		return fmt.Sprintf("%q:%s", key, value(random, depth-1))
	}) + "}"
}

// TestNoValueIsKept looks for words of the values, and of keys that are values.
func TestNoValueIsKept(t *testing.T) {
	s := of(t, `{"title":"SECRET","n":424242,"list":["SECRET",1],"mail":"secret@example.com","by_user":{"secret@example.com":{"name":"SECRET"}},
		"files":{"/home/SECRET/x":1},"days":{"2024-01-01":1},"ids":{"SECRET12345":1,"b":2},"s":{"SECRET of mine":1},"nl":{"SECRET\n":1}}`)
	data, err := json.Marshal(s)
	if err != nil || strings.Contains(strings.ToLower(string(data)), "secret") || strings.Contains(string(data), "2024") || strings.Contains(string(data), "42") {
		t.Errorf("%s, %v", data, err)
	}
}

func TestDamagedShapes(t *testing.T) {
	for _, bad := range []string{
		`{"k":256}`, `{"k":-1}`, `{"k":12}`, `{"k":1,"x":1}`, `{"any":true,"k":1}`, `{"k":1,"f":"uuid"}`, `{"k":16,"f":"SECRET"}`, `{"k":1,"e":{"k":1}}`,
		`{"k":32,"e":{}}`, `{"k":64,"v":{"k":1},"p":[{"n":"a","s":{"k":1}}]}`, `{"k":64,"p":[{"n":"a b","s":{"k":1}}]}`, `{"k":64,"p":[{"n":"a"}]}`,
		`{"k":64,"p":[{"n":"b","s":{"k":1}},{"n":"a","s":{"k":1}}]}`, `{"k":64,"p":[{"n":"a","s":{"k":1}},{"n":"a","s":{"k":1}}]}`, `[]`, `"x"`, `7`,
		strings.Repeat(`{"k":32,"e":`, 14) + `{"k":1}` + strings.Repeat("}", 14), strings.Repeat(`{"k":32,"e":`, 9000) + `{"k":1}` + strings.Repeat("}", 9000),
		`{"k":64,"p":[` + many(200, func(i int) string { return fmt.Sprintf(`{"n":"a%c%c","s":{"k":1}}`, 'a'+i/26, 'a'+i%26) }) + `]}`,
		`{"k":64,"p":[` + many(20, func(i int) string { return fmt.Sprintf(`{"n":"a%c","o":true,"s":{"k":1}}`, 'a'+i) }) + `]}`,
	} {
		var s jsontype.Shape
		if err := json.Unmarshal([]byte(bad), &s); err == nil {
			t.Errorf("%.100s was read as %s", bad, short(s))
		}
	}
	var s jsontype.Shape
	if err := s.UnmarshalJSON([]byte(`{"k":64,"p":[{"n":"a b","s":{"k":1}}]}`)); !errors.Is(err, jsontype.ErrDamaged) {
		t.Error(err)
	}
}

func FuzzOf(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"x",null,true,{}],"b@c.d":{"e":[]}}`), []byte(`[[[]]]`), []byte(`"2024-01-01"`))
	f.Add([]byte("{\"\\ud800\":1,\"\xff\":2,\"\\u202e\":3}"), []byte(`{"a":1,"a":{}}`), []byte(" 1e5 "))
	f.Fuzz(func(t *testing.T, x, y, z []byte) {
		var shapes [3]jsontype.Shape
		for i, data := range [][]byte{x, y, z} {
			s, err := jsontype.Of(data)
			if (err == nil) != json.Valid(data) {
				t.Fatalf("%q: %v", data, err)
			}
			shapes[i] = s
		}
		laws(t, shapes[0], shapes[1], shapes[2])
	})
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"k":96,"e":{"k":20,"f":"uuid"},"p":[{"n":"a","o":true,"s":{"any":true}}]}`))
	f.Add([]byte(`{"k":64,"v":{"k":1}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s jsontype.Shape
		if s.UnmarshalJSON(data) == nil {
			sound(t, s)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	record := `{"id":12345,"url":"https://api.example.com/repos/a/b/issues/1","title":"Something \"does\" not work","user":{"login":"ada","id":7,"site_admin":false},` +
		`"labels":[{"id":1,"name":"bug","color":"f00"}],"state":"open","created_at":"2024-01-01T10:00:00Z","body":"` + strings.Repeat("lorem ipsum ", 40) + `","score":1.5,"milestone":null}`
	for _, n := range []int{1, 100, 10_000} {
		data := []byte("[" + many(n, func(int) string { return record }) + "]")
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsontype.Of(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
