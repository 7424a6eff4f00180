package codegen_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sallyport/codegen"
	"sallyport/internal/tool"
)

// pagesOf returns how a tool pages, as the model says it, "" if it does not.
func pagesOf(t *testing.T, tl tool.Tool) string {
	t.Helper()
	var dump struct{ Pages json.RawMessage }
	if err := json.Unmarshal(codegen.Dump(tl), &dump); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(dump.Pages)), "")
}

func TestPages(t *testing.T) {
	for properties, want := range map[string]string{
		`"cursor":{"type":"string"},"limit":{"type":"integer"}`:                                                                                   `{"by":"cursor","name":"cursor"}`,
		`"cursor":{"type":["string","null"],"description":"Pagination cursor"}`:                                                                   `{"by":"cursor","name":"cursor"}`,
		`"cursor":{"type":"boolean"},"limit":{"type":"integer"}`:                                                                                  ``, // it is drawn
		`"cursor":{"type":"string","description":"Decoration of the mouse"}`:                                                                      ``,
		`"after":{"type":"string","description":"Only what was created after this date"},"page":{"type":"integer"},"per_page":{"type":"integer"}`: `{"by":"page","name":"page"}`,
		`"page":{"type":"integer","description":"The page of the browser"}`:                                                                       ``,
		`"pageIdx":{"type":"integer","description":"Page number (0-based)"}`:                                                                      `{"by":"page","name":"pageIdx","first":0}`,
		`"offset":{"type":"integer","description":"Line to begin with"},"limit":{"type":"integer"}`:                                               ``, // into a text
		`"offset":{"type":"integer","description":"Pagination offset (max 9)"},"count":{"type":"integer"}`:                                        `{"by":"page","name":"offset","first":0}`,
		`"skip":{"type":"integer"},"top":{"type":"integer"}`:                                                                                      `{"by":"offset","name":"skip"}`,
		`"skiptoken":{"type":"string","description":"the @odata.nextLink of the response before"}`:                                                `{"by":"link","name":"skiptoken"}`,
		`"starting_after":{"type":"string"}`:                                                                                                      `{"by":"last","name":"starting_after"}`,
		`"limit":{"type":"integer"}`:                                                                                                              ``,
	} {
		tl := tool.Tool{ID: tool.ID{Upstream: "up", Name: "f"}, Input: json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)}
		if got := pagesOf(t, tl); got != want {
			t.Errorf("%s:\n%s, want %s", properties, got, want)
		}
	}
	known := tool.Tool{ID: tool.ID{Upstream: "up", Name: "f"}, Input: json.RawMessage(`{"type":"object","properties":{"after":{"type":"string","description":"cursor"}}}`),
		Output: json.RawMessage(`{"type":"object","properties":{"issues":{"type":"array"},"pageInfo":{"type":"object","properties":{"endCursor":{"type":"string"},"hasNextPage":{"type":"boolean"}}}}}`)}
	if got, want := pagesOf(t, known), `{"by":"cursor","name":"after","next":["pageInfo","endCursor"],"more":["pageInfo","hasNextPage"],"items":["issues"]}`; got != want {
		t.Errorf("declared: %s, want %s", got, want)
	}
	known.Output = json.RawMessage(`{"type":"string"}`)
	if got := pagesOf(t, known); got != "" {
		t.Errorf("text pages: %s", got)
	}
}

// TestPagesOfCatalog holds how many real tools can be iterated, and that what writes or draws is not among them.
func TestPagesOfCatalog(t *testing.T) {
	count := 0
	for _, up := range catalog(t) {
		for _, tl := range up.Tools {
			if pagesOf(t, tl) == "" {
				continue
			}
			count++
			for _, verb := range []string{"create", "update", "delete", "send", "click", "screenshot", "read_file"} {
				if strings.HasPrefix(strings.ToLower(tl.ID.Name), verb) {
					t.Errorf("%s pages: %s", tl.ID, pagesOf(t, tl))
				}
			}
		}
	}
	if count < 270 {
		t.Errorf("%d tools of the catalogue can be iterated", count)
	}
}
