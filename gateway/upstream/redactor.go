package upstream

import "github.com/modelcontextprotocol/go-sdk/jsonrpc"

// redactMessage redacts secrets in every message of an upstream: results, definitions,
// requests and notifications, before they are processed.
func (v redactor) redactMessage(msg jsonrpc.Message) {
	switch msg := msg.(type) {
	case *jsonrpc.Response:
		msg.Result = v.mask.Hide(msg.Result)
		if e := rpcError(msg.Error); e != nil {
			e.Message, e.Data = v.mask.Text(e.Message), v.mask.Hide(e.Data)
		}
	case *jsonrpc.Request:
		msg.Params = v.mask.Hide(msg.Params)
	}
}
