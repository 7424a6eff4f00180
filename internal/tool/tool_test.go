package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/tool"
)

func TestParseID(t *testing.T) {
	id, err := tool.ParseID("memory.read_graph")
	if want := (tool.ID{Upstream: "memory", Name: "read_graph"}); err != nil || id != want {
		t.Errorf("got %v, %v", id, err)
	}
	for _, bad := range []string{"", "memory", ".", "memory.", ".read", "a.b.c", "a.tools/call", "a.resources/", "a./read", "a.../x", "a.b/c", "a/b.c", "a.resources/read/x", "a.ping/", "a.Resources/read"} {
		if _, err := tool.ParseID(bad); tool.AsError(err).Kind != tool.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, method := range []string{
		tool.ListResources, tool.ListTemplates, tool.ReadResource, tool.ListPrompts, tool.GetPrompt, tool.Complete, tool.Subscribe, tool.Unsubscribe, tool.SetLogLevel,
	} {
		if id, err := tool.ParseID("memory." + method); err != nil || id.Method() != method || id.Upstream != "memory" {
			t.Errorf("%s: %v, %v", method, id, err)
		}
	}
	var back tool.ID
	data, err := json.Marshal(id)
	if err != nil || json.Unmarshal(data, &back) != nil || back != id {
		t.Errorf("%s became %v, %v", data, back, err)
	}
}

func TestIdentifier(t *testing.T) {
	for wire, want := range map[string]string{
		"create_entities": "create_entities",
		"get-sum":         "get_sum",
		"createInvoice":   "createInvoice",
		"API-post-search": "API_post_search",
		"class":           "class_",
		"import":          "import_",
		"then":            "then_",
		"constructor":     "constructor_",
		"__init__":        "_init__",
		"__proto__":       "_proto__",
		"3d":              "_3d",
		"../x":            "___x"[2:],
		"a.b/c":           "a_b_c",
		"index":           "index_",
	} {
		if got := tool.Identifier(wire); got != want {
			t.Errorf("Identifier(%q) = %q, want %q", wire, got, want)
		}
	}
	for _, wire := range []string{"", "___", "日本語", "..", strings.Repeat("x", 200), strings.Repeat("3", 64)} {
		if got := tool.Identifier(wire); !identifier.MatchString(got) || tool.Identifier(got) != got {
			t.Errorf("Identifier(%q) = %q", wire, got)
		}
	}
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,64}$`)

func TestIdentifiersAreInjective(t *testing.T) {
	evil := tool.Identifiers([]string{"a-b", "a_b"})[0] // the name that "a-b" gets
	wires := []string{"a-b", "a_b", "a.b", evil, "日", "本", "x" + strings.Repeat("y", 100), "x" + strings.Repeat("y", 101), "class", "class_", "3d", "_3d"}
	checkInjective(t, wires)
	// Each of these wants the name that a clash of two others leads to.
	clash := tool.Identifiers([]string{"x-y", "x.y"})
	wires = append(wires, "x-y", "x.y", strings.ReplaceAll(clash[0], "_", "-"), clash[1], strings.Replace(clash[1], "_", ".", 1), "x--y")
	checkInjective(t, wires)
	if ids := tool.Identifiers(wires); ids[1] != "a_b" || ids[3] != evil || ids[9] != "class_" {
		t.Errorf("names that needed no change were changed: %v", ids)
	}
}

func checkInjective(t *testing.T, wires []string) {
	t.Helper()
	ids := tool.Identifiers(wires)
	owner := map[string]string{}
	for i, id := range ids {
		if !identifier.MatchString(id) {
			t.Errorf("%q became %q", wires[i], id)
		}
		if other, ok := owner[strings.ToLower(id)]; ok && other != wires[i] { // files of one name, where case does not count
			t.Errorf("%q and %q are both %q", other, wires[i], id)
		}
		owner[strings.ToLower(id)] = wires[i]
	}
	reversed := make([]string, len(wires))
	for i, w := range wires {
		reversed[len(wires)-1-i] = w
	}
	for i, id := range tool.Identifiers(reversed) {
		if want := ids[len(ids)-1-i]; id != want {
			t.Errorf("in another order %q became %q, not %q", reversed[i], id, want)
		}
	}
}

func FuzzIdentifiers(f *testing.F) {
	f.Add("a-b\na_b\na.b")
	f.Add("class\nclass_\n__proto__\n日\n\n" + strings.Repeat("z", 80))
	f.Add("resources\nresources_\nresources-\nprompts\n\u0435\ne\u0301\n\u00e9\n\x00\n_\n__")
	f.Fuzz(func(t *testing.T, list string) {
		wires := strings.Split(list, "\n")
		checkInjective(t, wires)
		checkInjective(t, append(wires, tool.Identifiers(wires)...)) // whoever knows the names can claim them
	})
}

// TestIdentifiersOfAnyList looks for clashes in random lists that were made to
// clash: of few letters, and of names that other names lead to.
func TestIdentifiersOfAnyList(t *testing.T) {
	parts := []string{"a", "_", "-", ".", "A", "1", "class", "日", "é", "e\u0301", "\u0435", "resources", "__", "", "\u200d", strings.Repeat("z", 60)}
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var wires []string
		for range 1 + random.IntN(20) {
			var wire strings.Builder
			for range random.IntN(4) {
				wire.WriteString(parts[random.IntN(len(parts))])
			}
			wires = append(wires, wire.String())
		}
		for range 3 {
			checkInjective(t, wires)
			for _, id := range tool.Identifiers(wires) {
				if random.IntN(3) == 0 {
					wires = append(wires, id, strings.ReplaceAll(id, "_", "-"))
				}
			}
		}
		if t.Failed() {
			return
		}
	}
}

var (
	section  = regexp.MustCompile("(?m)^### .*\n\n((?:\\|.*\n)+)")
	nameRow  = regexp.MustCompile("(?m)^\\| `(\".*\")` \\| `(\\w+)` \\|")
	notWords = regexp.MustCompile(`[^\w]+`)
)

// TestDocumentOfNames holds docs/reference/names.md to the code: each table is the list of one upstream.
func TestDocumentOfNames(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/names.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, table := range section.FindAllStringSubmatch(string(page), -1) {
		var wires, want []string
		for _, row := range nameRow.FindAllStringSubmatch(table[1], -1) {
			var wire string
			if err := json.Unmarshal([]byte(row[1]), &wire); err != nil {
				t.Fatalf("%s: %v", row[1], err)
			}
			if base, n, ok := strings.Cut(wire, " x"); ok && len(base) == 1 { // "a x200" stands for 200 of them
				count, err := strconv.Atoi(n)
				if err != nil {
					t.Fatal(err)
				}
				wire = strings.Repeat(base, count)
			}
			wires, want = append(wires, wire), append(want, row[2])
		}
		if diff := cmp.Diff(want, tool.Identifiers(wires)); diff != "" {
			t.Errorf("docs/reference/names.md (-says +is):\n%s", diff)
		}
		rows += len(wires)
	}
	if rows < 30 {
		t.Errorf("%d rows were found", rows)
	}
	reserved := reservedWords(string(page))
	if len(reserved) < 60 {
		t.Errorf("%d reserved words were found", len(reserved))
	}
	for _, word := range reserved {
		if tool.Identifier(word) != word+"_" {
			t.Errorf("%s is not reserved", word)
		}
	}
}

// reservedWords are those that the page lists after "Reserved:".
func reservedWords(page string) []string {
	_, after, _ := strings.Cut(page, "\nReserved:\n\n```text\n")
	list, _, _ := strings.Cut(after, "```")
	return strings.Fields(notWords.ReplaceAllString(list, " "))
}

// TestKeywordsAreReserved asks the languages themselves.
func TestKeywordsAreReserved(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import keyword; print(*keyword.kwlist, *keyword.softkwlist)").Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(out))
	if len(words) < 35 {
		t.Fatalf("Python has the keywords %q", words)
	}
	for _, word := range words {
		if got := tool.Identifier(word); got == word {
			t.Errorf("%s is a keyword of Python", word)
		}
	}
	// ECMAScript 2025, 12.7.2, with those of strict code and modules, and TypeScript's "reserved words".
	for word := range strings.FieldsSeq(`await break case catch class const continue debugger default delete do else enum export extends false finally for
		function if import in instanceof new null return super switch this throw true try typeof var void while with yield
		let static implements interface package private protected public arguments eval undefined`) {
		if got := tool.Identifier(word); got != word+"_" {
			t.Errorf("%s is reserved in TypeScript, and stays %s", word, got)
		}
	}
}

func TestValue(t *testing.T) {
	text := func(s string) tool.Content { return tool.Content{Type: "text", Text: s} }
	for _, test := range []struct {
		name   string
		result tool.Result
		want   string
	}{
		{"structured", tool.Result{Structured: json.RawMessage(`{"a":1}`), Content: []tool.Content{text("x")}}, `{"json":{"a":1}}`},
		{"null is no structured content", tool.Result{Structured: json.RawMessage(`null`), Content: []tool.Content{text("x")}}, `{"json":"x"}`},
		{"nothing", tool.Result{}, `{"json":null}`},
		{"a JSON object as text", tool.Result{Content: []tool.Content{text(" {\"n\": 9007199254740993}\n")}}, `{"json":{"n":9007199254740993}}`},
		{"a number as text stays text", tool.Result{Content: []tool.Content{text("007")}}, `{"json":"007"}`},
		{"broken JSON stays text", tool.Result{Content: []tool.Content{text("{oops")}}, `{"json":"{oops"}`},
		{"an image", tool.Result{Content: []tool.Content{{Type: "image", Data: []byte("x"), MIME: "image/png"}}}, `{"blob":{"mime":"image/png","data":"eA=="}}`},
		{"several", tool.Result{Content: []tool.Content{text("a"), text("[1]")}}, `{"parts":[{"json":"a"},{"json":[1]}]}`},
		{"a forged blob is JSON", tool.Result{Content: []tool.Content{text(`{"blob":{"mime":"x","data":""}}`)}}, `{"json":{"blob":{"mime":"x","data":""}}}`},
		{"a text resource", tool.Result{Content: []tool.Content{{Type: "resource", URI: "file:///x", Text: "t"}}}, `{"json":{"uri":"file:///x","text":"t"}}`},
		{"a type from the future", tool.Result{Content: []tool.Content{{Type: "hologram", Raw: json.RawMessage(`{"type":"hologram"}`)}}}, `{"json":{"type":"hologram"}}`},
	} {
		data, err := json.Marshal(test.result.Value())
		if diff := cmp.Diff(test.want, string(data)); diff != "" || err != nil {
			t.Errorf("%s (-want +got): %v\n%s", test.name, err, diff)
		}
	}
}

// A text becomes the JSON string that says it; what is no character becomes U+FFFD.
func FuzzTextValue(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\\n\r\t\b\x00\x1f\x7f", "<&>\u2028 é 😀", "\xff\xfea\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		value := tool.Result{Content: []tool.Content{{Type: "text", Text: "." + s}}}.Value()
		if err := json.Unmarshal(value.JSON, &got); err != nil || got != strings.ToValidUTF8("."+s, "\uFFFD") {
			t.Errorf("%q became %s: %v", s, value.JSON, err)
		}
	})
}

func TestDigestTellsDefinitionsApart(t *testing.T) {
	one := tool.Tool{ID: tool.ID{Upstream: "u", Name: "t"}, Description: "reads", Input: json.RawMessage(`{}`)}
	other := one
	other.Annotations.Destructive = new(true)
	if one.Digest() == other.Digest() || one.Digest() != tool.Tool(one).Digest() {
		t.Error("digests do not tell definitions apart")
	}
}

func TestAsError(t *testing.T) {
	known := &tool.Error{Kind: tool.Denied, Message: "no", Hint: "ask"}
	for _, test := range []struct {
		err  error
		want tool.Kind
	}{
		{fmt.Errorf("call: %w", known), tool.Denied}, {context.DeadlineExceeded, tool.Timeout},
		{context.Canceled, tool.Canceled}, {fmt.Errorf("open /secret/path"), tool.Internal},
	} {
		if got := tool.AsError(test.err); got.Kind != test.want || strings.Contains(got.Error(), "/secret") {
			t.Errorf("AsError(%v) = %v", test.err, got)
		}
	}
}
