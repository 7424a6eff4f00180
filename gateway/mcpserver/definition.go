package mcpserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/catalog"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
)

// A model reads these definitions at every turn: each word costs tokens, and a
// missing word costs a retry. A test enforces the token budget.

func searchTool(ups []catalog.Upstream) *mcp.Tool {
	return &mcp.Tool{
		Name:        "search_tools",
		Description: "Find typed functions for execute_code: say what each should do, comma-separated, or its name." + DescribeUpstreams(ups),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string"},` +
			`"language":{"enum":["python","typescript"]}}}`),
	}
}

func executeTool(environments map[string]config.Environment, workspace string) *mcp.Tool {
	packages := "packages"
	if len(environments) > 0 {
		packages = "packages but those of its environment"
	}
	return &mcp.Tool{
		Name: "execute_code",
		Description: "Run Python (default) or TypeScript without network or " + packages + ". Only prints and the last expression's value come back: " +
			"filter, join and loop in code.\n" +
			"from servers.UPSTREAM import TOOL gives functions with native results. sallyport exports ToolError, parallel(lambda: f(), ...), emit(file or rows) for the user. /workspace is kept.",
		InputSchema: json.RawMessage(`{"type":"object","required":["code"],"properties":{` +
			`"code":{"type":"string"},` +
			`"language":{"enum":["python","typescript"]},` +
			environmentProperty(environments) + workspace +
			`"session":{"type":"string","description":"keeps variables"}}}`),
	}
}

// environmentProperty returns the schema of the environment parameter, "" where there is only the default environment.
func environmentProperty(environments map[string]config.Environment) string {
	names := slices.Sorted(maps.Keys(environments))
	names = slices.DeleteFunc(names, func(name string) bool { return name == config.DefaultEnvironment })
	if len(names) == 0 {
		return ""
	}
	about := make([]string, 0, len(names)+1)
	for _, name := range append([]string{config.DefaultEnvironment}, names...) {
		if text := trimDescription(sanitize.Line(environments[name].Description, 80)); text != "" {
			about = append(about, name+": "+text)
		}
	}
	property := struct {
		Enum        []string `json:"enum"`
		Description string   `json:"description,omitempty"`
	}{append([]string{config.DefaultEnvironment}, names...), strings.Join(about, "; ")}
	data, err := json.Marshal(property)
	if err != nil {
		return ""
	}
	return `"environment":` + string(data) + ","
}

const (
	// maxUpstreamList bounds the list of upstreams in the description of search_tools, in
	// bytes: at most about 300 tokens. maxDescribed bounds a list with descriptions, at most about 45 tokens.
	maxUpstreamList, maxDescribed = 1000, 200
	// maxUpstreamName is the longest name in it, in bytes; longer ones are truncated.
	maxUpstreamName = 64
)

// descriptionLengths returns the maximum lengths of an upstream's description, in characters. The
// largest one with which the list fits is used.
func descriptionLengths() []int { return []int{80, 60, 40, 24, 0} }

// DescribeUpstreams returns the list of upstreams for a model, in the order of their IDs, with
// their descriptions in the settings. It has nothing that an upstream sends, which is
// known only once connected and may change: the text is the same in every run with the
// same settings, which keeps prompt caches valid. It has at most about 1,050 bytes,
// and is "" without upstreams.
func DescribeUpstreams(ups []catalog.Upstream) string {
	if len(ups) == 0 {
		return ""
	}
	sorted := slices.SortedFunc(slices.Values(ups), func(a, b catalog.Upstream) int { return cmp.Compare(a.ID, b.ID) })
	var entries []string
	for _, length := range descriptionLengths() {
		entries = upstreamEntries(sorted, length)
		if len(strings.Join(entries, "; ")) <= maxDescribed {
			break
		}
	}
	size, shown := 0, 0
	for shown < len(entries) && size+len(entries[shown])+2 <= maxUpstreamList+2 {
		size += len(entries[shown]) + 2
		shown++
	}
	text := "\nUpstreams: " + strings.Join(entries[:shown], "; ")
	if more := len(entries) - shown; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text + "."
}

func upstreamEntries(ups []catalog.Upstream, length int) []string {
	entries := make([]string, len(ups))
	for i, up := range ups {
		entries[i] = up.ID[:min(len(up.ID), maxUpstreamName)]
		if length == 0 {
			continue
		}
		if about := trimDescription(sanitize.Line(up.Description, length)); about != "" {
			entries[i] += " (" + about + ")"
		}
	}
	return entries
}

// trimDescription removes the final full stop of a text and, from a truncated one, the incomplete word or parenthesis at its end.
func trimDescription(text string) string {
	head, cut := strings.CutSuffix(text, "…")
	if !cut {
		return strings.TrimSuffix(text, ".")
	}
	if open := strings.LastIndexByte(head, '('); open > 0 && !strings.Contains(head[open:], ")") {
		head = head[:open]
	} else if space := strings.LastIndexByte(head, ' '); space > 0 {
		head = head[:space]
	}
	return strings.TrimRight(head, " ,;:-–") + "…"
}
