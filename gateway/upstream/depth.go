package upstream

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/gateway/upstream/jsontext"
)

// tooDeep is the error of a response with parts nested deeper than [jsontext.MaxDepth]; rest
// is the result without them, which suffices for a list.
type tooDeep struct{ rest []byte }

func (*tooDeep) Error() string {
	return fmt.Sprintf("it is nested deeper than %d levels", jsontext.MaxDepth)
}

// shallow returns the message to use for a pruned one: a response becomes a [tooDeep]
// error, any other message is dropped (nil).
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
