package mcpserver

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/mcpapp"
	"sallyport/internal/tool"
)

// resultKey is the member of a link's _meta with the result that its user interface shows.
const resultKey = "sallyport/result"

// audioSince is the first revision of the protocol that has audio. Revisions are dates.
const audioSince = "2025-03-26"

// revisionOf returns the protocol revision of a client's session, "" for a stateless request, whose revision is newer than all of those.
func revisionOf(req *mcp.CallToolRequest) string {
	if req.Session == nil || req.Session.InitializeParams() == nil {
		return ""
	}
	return req.Session.InitializeParams().ProtocolVersion
}

// contentBlocks converts what a program emitted to content of its result. Images and audio
// are for model and user; texts and files only for the user, as the program could
// have printed them. A client that shows user interfaces (apps) gets a link to one in place of the text of its result.
func contentBlocks(items []tool.Content, revision string, apps bool) []mcp.Content {
	var all []mcp.Content
	user := &mcp.Annotations{Audience: []mcp.Role{"user"}}
	for _, c := range items {
		switch {
		case apps && c.Type == "text" && c.Raw != nil:
			all = append(all, &mcp.ResourceLink{URI: c.URI, Name: c.Name, MIMEType: mcpapp.MIMEType, Annotations: user, Meta: mcp.Meta{resultKey: c.Raw}})
		case c.Type == "text":
			all = append(all, &mcp.TextContent{Text: c.Text, Annotations: user})
		case c.Type == "image":
			all = append(all, &mcp.ImageContent{Data: c.Data, MIMEType: c.MIME})
		case c.Type == "audio" && (revision == "" || revision >= audioSince):
			all = append(all, &mcp.AudioContent{Data: c.Data, MIMEType: c.MIME})
		default:
			all = append(all, &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: c.URI, MIMEType: c.MIME, Text: c.Text, Blob: c.Data}, Annotations: user})
		}
	}
	return all
}
