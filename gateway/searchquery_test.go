package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
)

// TestWhatIsAskedInGeneral: who asks what there is wants the list, not tools with those words.
func TestWhatIsAskedInGeneral(t *testing.T) {
	g, _ := office(t)
	for _, query := range []string{"*", "?", "🎉", "what can you do?", "list all available tools", "which tools do you have?", "help", "show me all the tools", "What's in this?"} {
		if found := search(t, g, toolsearch.Request{Query: query}); !found.Listing || len(found.Upstreams) < 2 {
			t.Errorf("%q: %+v", query, found)
		}
		if found := search(t, g, toolsearch.Request{Query: query, Upstream: "my_notes"}); !found.Listing || len(found.Tools) != 3 {
			t.Errorf("%q of my_notes: %+v", query, found)
		}
	}
	for _, query := range []string{"list notes", "show all", "what is the sum", "a tool to throw notes away", "can you add"} {
		if found := search(t, g, toolsearch.Request{Query: query}); found.Listing {
			t.Errorf("%q lists all", query)
		}
	}
	helper := open(t, settings(map[string]*site{"desk": newSite(t, func(s *site) { s.tool("list_tools", "List hammers.", "", echo) })}), nil)
	if found := search(t, helper, toolsearch.Request{Query: "list tools"}); found.Listing || len(found.Tools) == 0 || found.Tools[0].ID.Name != "list_tools" {
		t.Errorf("a tool's name: %+v", found)
	}
}

// TestUpstreamInQuery: a query says itself where to look.
func TestUpstreamInQuery(t *testing.T) {
	g, _ := office(t)
	for query, want := range map[string]string{
		"upstream:my_notes":          "  create_note(",
		"UPSTREAM:My-Notes":          "  create_note(",
		`upstream:"my_notes" xyzzy`:  "No tool of my_notes matches. Leave out upstream to search all, or query to list its tools.",
		"upstream:my_notes throw":    "delete_notes",
		"upstream:nowhere add":       "(no upstream nowhere; all were searched)",
		"upstream:no\x1bwhere add":   "(no upstream nowhere; all were searched)",
		"upstream:nowhere":           "no upstream nowhere",
		"sallyport":                  "from sallyport import ...",
		"add upstream:calc":          "from servers.calc import ...",
		"add upstream: calc":         "from servers.calc import ...",
		"upstream:nowhere " + "list": "no upstream nowhere",
	} {
		if text := search(t, g, toolsearch.Request{Query: query}).Text(); !strings.Contains(text, want) {
			t.Errorf("%q has no %q:\n%s", query, want, text)
		}
	}
	if found := search(t, g, toolsearch.Request{Upstream: "MY-Notes"}); len(found.Tools) != 3 {
		t.Errorf("another case: %+v", found)
	}
}

// TestDetailInQuery: a query says itself how much to show.
func TestDetailInQuery(t *testing.T) {
	g, _ := office(t)
	if found := search(t, g, toolsearch.Request{Query: "detail:full add"}); found.Detail != toolsearch.Full || found.Tools[0].ID.Name != "add" {
		t.Errorf("full: %+v", found)
	}
	if found := search(t, g, toolsearch.Request{Query: "detail:all add"}); found.Detail != toolsearch.Signature || found.Tools[0].ID.Name != "add" {
		t.Errorf("unknown: %+v", found)
	}
}

// TestHabits: what most tools of an upstream say and take is not what one is told by.
func TestHabits(t *testing.T) {
	retry := `"retry-delay":{"type":"integer","description":"in seconds"},"retry-mode":{"enum":["fixed","slow"]},"tenant":{"type":"string","description":"e.g. acme"},"trace":{"type":"boolean"}`
	g := open(t, settings(map[string]*site{"cloud": newSite(t, func(s *site) {
		for _, name := range []string{"disk", "network", "bucket", "queue", "secret", "cluster"} {
			s.tool("create_"+name, "Cloud: this is the API. Make a "+name+".\nError Responses:\n400: Bad request", `"required":["name"],"properties":{`+retry+`,"name":{"type":"string"},"`+name+`_size":{"type":"integer"}}`, echo)
		}
	})}), nil)
	g.Catalog.WaitConnected(t.Context())
	text := search(t, g, toolsearch.Request{Query: "create", Limit: 2}).Text()
	for _, want := range []string{
		`_size: int = ..., retry_delay: int = ..., retry_mode: "fixed"|"slow" = ..., tenant: str = ..., trace: bool = ...)`,
		"_size: int = ..., ... 4 more)", "    Make a ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, unwanted := range []string{"this is the API", "Error", "in seconds", "e.g. acme"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("%q in\n%s", unwanted, text)
		}
	}
	full := search(t, g, toolsearch.Request{Query: "create_disk", Detail: toolsearch.Full, Limit: 1}).Text()
	if !strings.Contains(full, "this is the API") || !strings.Contains(full, "retry_delay: ") {
		t.Errorf("full leaves something out:\n%s", full)
	}
}

// TestSummaryIsOneSentence of a description that has lists and links.
func TestSummaryIsOneSentence(t *testing.T) {
	cases := map[string]string{
		"Creates a new [workspace](https://example.com/docs/a/b) for e.g. teams. More.":  "Creates a new workspace for e.g. teams",
		"Wiki | Retrieve a page\nError Responses:\n400: Bad request":                     "Wiki | Retrieve a page",
		"Read a long\nline that goes on. And on.":                                        "Read a long line that goes on",
		"# Deploy\n\nPuts a site online.":                                                "# Deploy Puts a site online",
		"Puts a site online\n\n- at once\n- for ever":                                    "Puts a site online",
		"Stops (all) of them\n\nArgs:\n  name: the name":                                 "Stops (all) of them",
		strings.Repeat("é", 499) + "\n\n- x":                                             strings.Repeat("é", 119) + "…",
		"[" + strings.Repeat("x", 200) + "](https://example.com) stays as it is. And so": "[" + strings.Repeat("x", 118) + "…",
	}
	g := open(t, settings(map[string]*site{"up": newSite(t, func(s *site) {
		i := 0
		for description := range cases {
			s.tool("t"+string(rune('a'+i)), description, "", echo)
			i++
		}
	})}), nil)
	g.Catalog.WaitConnected(t.Context())
	got := map[string]bool{}
	for _, found := range search(t, g, toolsearch.Request{Upstream: "up", Detail: toolsearch.Summary, Budget: 4000}).Tools {
		got[found.Summary] = true
	}
	for _, want := range cases {
		if !got[want] {
			t.Errorf("none is %q of %v", want, got)
		}
	}
}

// TestOneWordIsNoFunction: what a program can import stands behind tools that one word fits as well.
func TestOneWordIsNoFunction(t *testing.T) {
	g := open(t, settings(map[string]*site{"files": newSite(t, func(s *site) {
		s.tool("read_file", "Read the complete contents of a file.", `"required":["path"],"properties":{"path":{"type":"string"}}`, echo)
		s.tool("list_files", "List the files of a folder.", "", echo)
		s.tool("save_value", "Save a value in the settings for later.", "", echo)
	})}), nil)
	g.Catalog.WaitConnected(t.Context())
	for query, want := range map[string]string{"read": "files.read_file", "list": "files.list_files", "emit": "sallyport.emit"} {
		if found := search(t, g, toolsearch.Request{Query: query}); len(found.Tools) == 0 || found.Tools[0].ID.String() != want {
			t.Errorf("%q: %+v", query, found.Tools)
		}
	}
}

// TestFunctionBesideTool: a sentence that is a function's is answered with it, behind a tool that has all of it too.
func TestFunctionBesideTool(t *testing.T) {
	g := open(t, settings(map[string]*site{"files": newSite(t, func(s *site) { s.tool("save_value", "Save a value in the settings for later.", "", echo) })}), nil)
	g.Catalog.WaitConnected(t.Context())
	text := search(t, g, toolsearch.Request{Query: "save value for later"}).Text()
	if !strings.HasPrefix(text, "from servers.files") || !strings.Contains(text, "\nalso sallyport: save") {
		t.Error(text)
	}
	if found := search(t, g, toolsearch.Request{Query: "save xyzzy of the vwxyz and quux"}); len(found.Tools) == 0 || found.Tools[0].ID.Upstream != "files" || !found.Weak {
		t.Errorf("words that nothing has count: %+v", found)
	}
}

// TestResourceByURI: a URI is looked up among thousands of others like it.
func TestResourceByURI(t *testing.T) {
	cfg := settings(nil)
	cfg.Upstreams = []config.Upstream{upstreamOf("shelf", newSite(t, bookcase, shelves).web.URL), upstreamOf("calc", newSite(t, calc).web.URL)}
	g := open(t, cfg, nil)
	g.Catalog.WaitConnected(t.Context())
	for query, want := range map[string]string{"shelf://handbook/travel": "shelf://handbook/travel", "shelf://minutes/monday": "shelf://minutes/{day}", "shelf://handbook/travel/7": "shelf://handbook/travel/7"} {
		for _, upstream := range []string{"", "shelf"} {
			found := search(t, g, toolsearch.Request{Query: query, Upstream: upstream})
			if len(found.Tools) == 0 || found.Tools[0].ID.Name != want || found.Weak {
				t.Errorf("%s in %q: %+v", query, upstream, found)
			}
		}
	}
}

// shelves are many resources at addresses that are much alike.
func shelves(s *site) {
	for i := range 60 {
		s.AddResource(&mcp.Resource{URI: fmt.Sprint("shelf://handbook/travel/", i), Name: "travel handbook shelf"}, nil)
	}
}
