package jsontext

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// DepthError is the error of a response with parts nested deeper than [MaxDepth]; Rest
// is the result without them, which suffices for a list.
type DepthError struct{ Rest []byte }

func (*DepthError) Error() string {
	return fmt.Sprintf("it is nested deeper than %d levels", MaxDepth)
}

// WithoutPruned returns the message to use for a pruned one: a response becomes a [DepthError]
// error, any other message is dropped (nil).
func WithoutPruned(msg jsonrpc.Message) jsonrpc.Message {
	resp, ok := msg.(*jsonrpc.Response)
	switch {
	case !ok:
		return nil
	case resp.Error == nil:
		return &jsonrpc.Response{ID: resp.ID, Error: &DepthError{resp.Result}}
	}
	return resp
}
