package upstream

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/gateway/upstream/jsontext"
)

// tooDeep is an answer of which parts are nested deeper than [jsontext.MaxDepth]; rest is
// the result without them, which is good enough for a list.
type tooDeep struct{ rest []byte }

func (*tooDeep) Error() string {
	return fmt.Sprintf("it is nested deeper than %d levels", jsontext.MaxDepth)
}

// shallow is the message without what was pruned of it: an answer becomes
// [tooDeep], of anything else nothing is left.
func shallow(msg jsonrpc.Message) jsonrpc.Message {
	resp, ok := msg.(*jsonrpc.Response)
	switch {
	case !ok:
		return nil
	case resp.Error == nil:
		return &jsonrpc.Response{ID: resp.ID, Error: &tooDeep{resp.Result}}
	}
	return resp
}
