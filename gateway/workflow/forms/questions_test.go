package forms_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/workflow/forms"
)

// TestQuestions: each input is asked for in its order, as its schema says, and what is typed is read as that.
func TestQuestions(t *testing.T) {
	t.Parallel()
	got, err := forms.Questions(json.RawMessage(`{"type":"object","required":["zeta","many"],"properties":{
		"zeta":{"type":"string","maxLength":9,"description":"the\u200b name"},
		"day":{"default":"2026-01-02","type":"string","format":"date"},
		"n":{"type":["integer","null"],"minimum":1,"maximum":5,"default":3},
		"on":{"type":"boolean"},
		"one":{"type":"string","enum":["a","b"]},
		"many":{"type":"array","minItems":1,"items":{"enum":[1,2]}},
		"any":{"type":"object"}}}`), map[string]string{"zeta": "Which?"})
	if err != nil {
		t.Fatal(err)
	}
	ab, numbers := []forms.Option{{Value: "a", Title: "a"}, {Value: "b", Title: "b"}}, []forms.Option{{Value: int64(1), Title: "1"}, {Value: int64(2), Title: "2"}}
	want := []forms.Question{
		{Name: "zeta", Type: "string", Title: "Which?", Description: "the name", Required: true, MaxLength: 9},
		{Name: "day", Type: "date", Title: "day", Default: "2026-01-02"},
		{Name: "n", Type: "integer", Title: "n", Default: int64(3), Min: int64(1), Max: int64(5)},
		{Name: "on", Type: "boolean", Title: "on"},
		{Name: "one", Type: "choice", Title: "one", Options: ab},
		{Name: "many", Type: "choices", Title: "many", Required: true, Options: numbers, MinLength: 1},
		{Name: "any", Type: "json", Title: "any"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if value, problem := got[2].Read("6"); problem == nil {
		t.Errorf("6 is %v", value)
	}
	for _, wrong := range []string{``, `[]`, `{"properties":{"a":`} {
		if _, err := forms.Questions(json.RawMessage(wrong), nil); err == nil {
			t.Errorf("%s is read", wrong)
		}
	}
}
