package pii_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/pii"
	"sallyport/internal/pii/piitest"
)

func anywhere(pii.Kind, []string) bool { return true }

func tokens(v *pii.Vault) pii.Swap {
	return func(kind pii.Kind, value string, number bool) (string, bool) {
		return v.Token(kind, value, number, "up"), true
	}
}

func seeds(f *testing.F) {
	f.Helper()
	for _, s := range piitest.Samples(3, 60) {
		f.Add(s.Text)
	}
	for _, s := range []string{
		"[EMAIL_1] ann@example.com [email_1_2] %5bPHONE_3%5D ANN@example.com", `{"a":"\u005bEMAIL_1\u005d","b@x.io":["4111111111111111",{"phone":4155552671}]}`,
		`{"x":"{\"phone\":4155552671,\"m\":\"a@b.io\\n\"}"}`, "a,email\n1,\"x,\"\"y\"\" a@b.io\"\n", "{\"phone\": 4155552671, ", "a://b:c@d", "\xff@\xfe.com", "“a@b.io”", "::1:::", "[[[[[[[EMAIL_1]",
		`["[EMAIL_1]", "[CARD_1]"]`, `{"card": 4111111111111111, "c": "[CARD_1]", "[CARD_1]": 1}`, "-----BEGIN RSA PRIVATE KEY-----x-----END RSA PRIVATE KEY-----",
		"SG. x", "ya29.", "hvs...", "secret-token: x", // marks of secrets alone
	} {
		f.Add(s)
	}
}

// Whatever comes in: nothing panics, findings are in order and in the text, what was
// taken out can be put back as it was, and what is left has nothing more to take out.
func FuzzText(f *testing.F) {
	seeds(f)
	d, err := pii.New(&pii.Options{Custom: map[string]*regexp.Regexp{"staff": regexp.MustCompile(`\bE-\d{4}\b`)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for _, found := range d.Find(text) {
			if found.Start < end || found.End <= found.Start || found.End > len(text) {
				t.Fatalf("finding %+v behind %d of %d", found, end, len(text))
			}
			end = found.End
		}
		v := pii.NewVault()
		out := d.Replace(text, nil, tokens(v))
		if again := d.Replace(text, nil, tokens(v)); again != out {
			t.Errorf("a second time is different: %q, %q", out, again)
		}
		if json.Valid([]byte(text)) != json.Valid([]byte(out)) {
			t.Errorf("JSON or not: %q became %q", text, out)
		}
		back, _, err := v.Restore(out, anywhere)
		if err != nil {
			t.Fatal(err)
		}
		if back != text && !sameJSON(back, text) {
			t.Errorf("%q\nbecame %q\nand then %q", text, out, back)
		}
	})
}

func FuzzJSON(f *testing.F) {
	seeds(f)
	d, err := pii.New(nil)
	if err != nil {
		f.Fatal(err)
	}
	fields, err := pii.ParseFields([]string{"$.a", "$..b[*]", "$[0].x"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		v := pii.NewVault()
		out := d.ReplaceJSON(json.RawMessage(text), &pii.Look{Fields: fields}, tokens(v))
		if !json.Valid(out) {
			t.Fatalf("%q became %q", text, out)
		}
		back, _, err := v.RestoreJSON(out, anywhere)
		if err != nil || !json.Valid(back) || !sameJSON(string(back), text) {
			t.Errorf("%q\nbecame %q\nand then %q: %v", text, out, back, err)
		}
	})
}

func FuzzFields(f *testing.F) {
	for _, s := range []string{"$.a.b", "$..x", "$['a b'][0][*].*", "$[", "$.", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, text string) { _, _ = pii.ParseFields([]string{text}) })
}

func sameJSON(a, b string) bool {
	var x, y any
	return decode(a, &x) && decode(b, &y) && reflect.DeepEqual(x, y)
}

func decode(text string, into *any) bool {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	return dec.Decode(into) == nil
}

// Names that are known are gone from any text, and what is no name is still there.
func FuzzNames(f *testing.F) {
	f.Add("Ann O'Neil", "by Ann O'Neil's, Ann\nO'Neil ANN O'NEIL")
	f.Add("J. R. Doe", "J. R. Doe J. R. J. R. Doe")
	f.Fuzz(func(t *testing.T, name, text string) {
		v := pii.NewVault()
		v.Token(pii.Name, name, false, "up")
		end := 0
		for _, found := range v.Names(text) {
			if found.Start < end || found.End <= found.Start || found.End > len(text) || found.Kind != pii.Name {
				t.Fatalf("%+v of %q", found, text)
			}
			if end = found.End; strings.EqualFold(text[found.Start:found.End], name) {
				continue
			}
			if a, b := strings.Fields(text[found.Start:found.End]), strings.Fields(name); len(a) != len(b) {
				t.Errorf("%q is not %q", text[found.Start:found.End], name)
			}
		}
	})
}
