package codegen

import (
	"errors"
	"strings"
	"testing"

	"sallyport/internal/testutil/ireval"
)

// TestSignaturesHaveAllRequired: a signature of a real tool never leaves out a required argument, whatever its length.
func TestSignaturesHaveAllRequired(t *testing.T) {
	s, err := ireval.ReadCatalog("../../shared/catalog", "../bench/search/queries.jsonl")
	if errors.Is(err, ireval.ErrNoData) {
		t.Skipf("no catalogue here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Entries {
		params := model(e.Tool).params
		names := pyParams(params)
		for form, text := range map[string]string{"whole": Usual{}.Signature(e.Tool, Python), "brief": Usual{}.Brief(e.Tool, Python)} {
			_, inside, _ := strings.Cut(text, "(")
			for i, p := range params {
				if p.required && !strings.Contains(inside, names[i]) {
					t.Errorf("the %s signature lacks %s: %s", form, names[i], text)
				}
			}
		}
	}
}
