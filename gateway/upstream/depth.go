package upstream

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/gateway/upstream/jsontext"
)

// depthError is the error of a response with parts nested deeper than [jsontext.MaxDepth]; rest
// is the result without them, which suffices for a list.
type depthError struct{ rest []byte }

func (*depthError) Error() string {
	return fmt.Sprintf("it is nested deeper than %d levels", jsontext.MaxDepth)
}

// withoutPruned returns the message to use for a pruned one: a response becomes a [depthError]
// error, any other message is dropped (nil).
func withoutPruned(msg jsonrpc.Message) jsonrpc.Message {
	resp, ok := msg.(*jsonrpc.Response)
	switch {
	case !ok:
		return nil
	case resp.Error == nil:
		return &jsonrpc.Response{ID: resp.ID, Error: &depthError{resp.Result}}
	}
	return resp
}
