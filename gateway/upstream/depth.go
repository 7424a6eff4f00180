package upstream

import (
	"bytes"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxDepth is how deep a message may be nested: what is deeper the SDK does not
// read, and takes for the end of the connection.
const maxDepth = 1000

// pruned stands, as a JSON string, for what was too deep. An upstream that sends
// it itself only makes its own definition be left out.
const pruned = `"\u2702 nested too deep"`

// tooDeep is an answer of which parts are nested deeper than [maxDepth]; rest is
// the result without them, which is good enough for a list.
type tooDeep struct{ rest []byte }

func (*tooDeep) Error() string { return fmt.Sprintf("it is nested deeper than %d levels", maxDepth) }

// prune replaces what is nested deeper than [maxDepth], and reports whether there
// was anything. What is no JSON stays none.
func prune(data []byte) ([]byte, bool) {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= maxDepth {
		return data, false // as nearly all, and quick
	}
	var out []byte
	depth, from, deep := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = endOfString(data, i)
		case '{', '[':
			if depth++; depth == maxDepth+1 {
				out, deep = append(append(out, data[from:i]...), pruned...), true
			}
		case '}', ']':
			if depth--; depth == maxDepth {
				from = i + 1
			}
		}
	}
	if !deep {
		return data, false
	}
	if depth <= maxDepth {
		out = append(out, data[from:]...)
	}
	return out, true
}

// endOfString returns where the string that begins at i ends: the place of its closing quote.
func endOfString(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
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
