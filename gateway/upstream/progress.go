package upstream

import "github.com/modelcontextprotocol/go-sdk/jsonrpc"

// notified takes one notification of the upstream.
func (w *wire) notified(msg *jsonrpc.Request) {
	switch msg.Method {
	case "notifications/tools/list_changed":
		w.changed(toolPart)
	case "notifications/resources/list_changed":
		w.changed(resourcePart | templatePart)
	case "notifications/prompts/list_changed":
		w.changed(promptPart)
	}
}
