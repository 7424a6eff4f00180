package forms_test

import (
	"strings"
	"testing"

	"sallyport/gateway/workflow/forms"
	"sallyport/internal/expr"
)

// What an answer makes of a form satisfies all that the form says, whatever the answer, and is taken as an answer as it is.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"kind": "other", "detail": "x", "size": "S"}`, `{"kind": "book", "size": "A5", "note": "n", "mail": "a@b.c"}`, `{"kind": null, "note": 1e999}`,
		`{"kind": ["book"], "detail": {"a": [[]]}}`, `{"": "", "kind": "\u0000"}`,
		`{"string": " x ", "text": "a\r\n", "coded": "<a>", "integer": "3", "number": "1e2", "boolean": "off", "date": " 2026-11-22", "datetime": "2026-11-22T10:00:00Z", "choice": "number TWO", "choices": "1,two"}`,
		`{"string": 12.5, "email": "a@b", "uri": "a:b", "choice": 1.0, "choices": [1, "two", "1"], "integer": 3.0}`,
	} {
		f.Add(seed, `{"kind": "book", "size": "A4"}`)
	}
	order, all, e := order(f), all(f), env(f)
	f.Fuzz(func(t *testing.T, first, second string) {
		for _, asked := range []*forms.Form{order, all} {
			s := &forms.State{}
			for _, source := range []string{first, second} {
				read, err := expr.Decode([]byte(source))
				given, ok := read.(map[string]any)
				if err != nil || !ok {
					return
				}
				if _, err := asked.Answer(t.Context(), e, s, given); err != nil {
					t.Fatal(err)
				}
			}
			if next(t, asked, e, s) != nil {
				continue
			}
			got := result(t, asked, e, s)
			if asked == order {
				satisfies(t, values(t, got))
			}
			again := &forms.State{}
			if said := answer(t, asked, e, again, got); said != "" || result(t, asked, e, again) != got {
				t.Errorf("%s is not what it says: %s", got, said)
			}
		}
	})
}

func satisfies(t *testing.T, r map[string]any) {
	t.Helper()
	sizes := map[any][]any{"book": {"A4", "A5"}, "other": {"S", "A4"}}[r["kind"]]
	mail, _ := r["mail"].(string)
	if sizes == nil || !strings.Contains(mail, "@") || r["size"] != sizes[0] && r["size"] != sizes[1] {
		t.Errorf("it does not satisfy the form: %v", r)
	}
	if _, has := r["detail"].(string); has != (r["kind"] == "other") {
		t.Errorf("a dependent field: %v", r)
	}
}
