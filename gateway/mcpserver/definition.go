package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/internal/plain"
)

// What stands here is read by a model at every turn: each word costs tokens for
// ever, and a word too few costs a second try. A test holds it to its budget.

func searchTool() *mcp.Tool {
	return &mcp.Tool{
		Name: "search_tools",
		Description: "Find functions that execute_code can import. Say what one should do, or a name; \"\" lists the upstreams. " +
			"Returns typed signatures (observed: learned, may vary) to write code from.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)},
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string"},` +
			`"detail":{"enum":["names","summary","signature","full"],"description":"default signature"},` +
			`"upstream":{"type":"string","description":"only this one"},` +
			`"limit":{"type":"integer"},` +
			`"language":{"enum":["python","typescript"],"description":"of the signatures"}}}`),
	}
}

func executeTool() *mcp.Tool {
	return &mcp.Tool{
		Name: "execute_code",
		Description: "Run a program in a sandbox (no network, no packages). Only what it prints and the value of its last expression come back: " +
			"filter, join and loop in code, and return just the answer.\n" +
			"Python: from servers.UPSTREAM import TOOL; r = TOOL(name=value)\n" +
			"TypeScript: import { TOOL } from \"servers/UPSTREAM\"; const r = await TOOL({ name: value })\n" +
			"Results are native values; a failed call raises ToolError. From sallyport import parallel(lambda: ..., ...) to run calls at once, " +
			"shape_of(r) for the type of an Any, emit(image, file or rows) to show the user, save, load, describe, ToolError. " +
			"/workspace is writable, for this run only; wrappers can be read in /servers.",
		InputSchema: json.RawMessage(`{"type":"object","required":["code"],"properties":{` +
			`"code":{"type":"string"},` +
			`"language":{"enum":["python","typescript"],"description":"default python"},` +
			`"timeout":{"type":"number","description":"seconds"}}}`),
	}
}

// maxAbout bounds what is said about each upstream, maxListed how many are
// named, maxDescribed with how many there is more than a name.
const (
	maxAbout     = 60
	maxListed    = 60
	maxDescribed = 20
)

// Instructions tell a model what is behind the door: the upstreams of the settings, in their order.
func Instructions(ups []gateway.Upstream) string {
	var b strings.Builder
	b.WriteString("One door to many tools: find functions with search_tools, then call them from a program in execute_code.")
	for i, up := range ups[:min(len(ups), maxListed)] {
		b.WriteString(separator(i))
		b.WriteString(up.ID)
		if about := plain.Line(up.Description, maxAbout); about != "" && len(ups) <= maxDescribed {
			b.WriteString(" (" + about + ")")
		}
	}
	if more := len(ups) - maxListed; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	if len(ups) > 0 {
		b.WriteString(".")
	}
	return b.String()
}

func separator(i int) string {
	if i == 0 {
		return " Upstreams: "
	}
	return "; "
}
