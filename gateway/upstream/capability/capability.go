// Package capability has the capabilities that the gateway declares to upstreams, which bound what they may request and send.
package capability

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/mcpapp"
)

// Of returns the capabilities of a session. asks reports that calls have peers that answer requests, roots that these have roots.
// Interfaces of tools are always declared: clients that show none get definitions without them.
func Of(asks, roots bool) *mcp.ClientCapabilities {
	can := &mcp.ClientCapabilities{}
	can.AddExtension(mcpapp.Extension, mcpapp.Capability())
	if !asks {
		return can
	}
	can.Sampling = &mcp.SamplingCapabilities{} //nolint:staticcheck // servers of older revisions use it
	can.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
	if roots {
		can.RootsV2 = &mcp.RootCapabilities{} //nolint:staticcheck // as above
	}
	return can
}

// Raw returns the capabilities of a request since revision 2026-07-28, which has no sessions.
func Raw(asks bool) json.RawMessage {
	raw, _ := json.Marshal(Of(asks, true)) // cannot fail
	return raw
}
