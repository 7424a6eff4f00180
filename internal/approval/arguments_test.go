package approval_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"sallyport/internal/approval"
	"sallyport/internal/sanitize"
)

func TestReadable(t *testing.T) {
	for name, c := range map[string]struct{ args, shown, err string }{
		"none":                {"", "{}", ""},
		"in order":            {`{"b": 1.50, "a": [12345678901234567890, null]}`, `{"a":[12345678901234567890,null],"b":1.50}`, ""},
		"markup":              {`{"a": "<b>&"}`, `{"a":"<b>&"}`, ""},
		"escapes":             {`{"a": "\u001b[31mred\u202eder\u200b"}`, `{"a":"redder"}`, ""},
		"a long text":         {`{"a": "` + strings.Repeat("x", 500) + `", "z": 1}`, `{"a":"` + strings.Repeat("x", 399) + `…… (500 characters)","z":1}`, ""},
		"names that look one": {`{"to": 1, "t\u200bo": 2}`, `{"\"t\\u200bo\"":2,"to":1}`, ""},
		"a member twice":      {`{"to": "me", "to": "you"}`, "", `"to" is in them twice`},
		"twice, deeper":       {`{"a": [{"to": 1, "\u0074o": 2}]}`, "", `"to" is in them twice`},
		"no JSON":             {`{"a": `, "", "they are not JSON"},
		"more than one":       {`{} {}`, "", "they are not JSON"},
		"no text":             {"{\"a\": \"\xff\"}", "", "they are not JSON"},
		"deep":                {strings.Repeat("[", 1<<20), "", "they are nested too deeply"},
	} {
		_, shown, err := approval.FormatArguments([]byte(c.args))
		said := ""
		if err != nil {
			said = err.Error()
		}
		if shown != c.shown || said != c.err {
			t.Errorf("%s: %s, %v; want %s, %s", name, shown, err, c.shown, c.err)
		}
	}
	_, shown, err := approval.FormatArguments([]byte(`[` + strings.Repeat(`"abcdefgh",`, 1000) + `1]`))
	if err != nil || utf8.RuneCountInString(shown) > 2100 || !strings.HasSuffix(shown, "… (cut: 11003 bytes in all)") {
		t.Errorf("%d, %v: %s", len(shown), err, shown[max(0, len(shown)-60):])
	}
}

// TestSameMeaning: the order of members makes no other call of it, the least change of a value does.
func TestSameMeaning(t *testing.T) {
	form := func(args string) string {
		canonical, _, err := approval.FormatArguments([]byte(args))
		if err != nil {
			t.Fatal(err)
		}
		return string(canonical)
	}
	if form(`{"a":1,"b":"x"}`) != form(` { "b" : "\u0078", "a" : 1 } `) {
		t.Error("the same call has two forms")
	}
	for _, c := range [][2]string{{`{"a":1}`, `{"a":1.0}`}, {`{"a":"x"}`, `{"a":"x\u200b"}`}, {`{"a":"\ud800"}`, `{"a":"\udfff"}`}, {`[9007199254740993]`, `[9007199254740992]`}} {
		if form(c[0]) == form(c[1]) {
			t.Errorf("%s and %s have one form", c[0], c[1])
		}
	}
}

// FuzzReadable: whatever is shown is short and hides nothing, and a form is its own.
func FuzzReadable(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2,{"b":null}]}`, `{"a":1,"a":2}`, "\"\xff\"", `{"":{"":""}}`, `"\u202e"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		canonical, shown, err := approval.FormatArguments(args)
		if err != nil {
			return
		}
		if utf8.RuneCountInString(shown) > 2100 || strings.ContainsFunc(shown, func(r rune) bool { return r != '\n' && r != '\t' && sanitize.Hidden(r) }) {
			t.Errorf("%q", shown)
		}
		if again, _, err := approval.FormatArguments(canonical); err == nil && string(again) != string(canonical) && !strings.Contains(strings.ToLower(string(args)), `\ud`) {
			t.Errorf("%q, then %q", canonical, again)
		}
	})
}
