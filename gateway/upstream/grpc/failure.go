package grpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	"sallyport/internal/sanitize"
)

const maxErrorText = 1000 // characters of a message or of a detail

// statusNames are the names of the codes in the specification of gRPC.
var statusNames = map[connect.Code]string{
	connect.CodeCanceled: "CANCELLED", connect.CodeUnknown: "UNKNOWN", connect.CodeInvalidArgument: "INVALID_ARGUMENT",
	connect.CodeDeadlineExceeded: "DEADLINE_EXCEEDED", connect.CodeNotFound: "NOT_FOUND", connect.CodeAlreadyExists: "ALREADY_EXISTS",
	connect.CodePermissionDenied: "PERMISSION_DENIED", connect.CodeResourceExhausted: "RESOURCE_EXHAUSTED",
	connect.CodeFailedPrecondition: "FAILED_PRECONDITION", connect.CodeAborted: "ABORTED", connect.CodeOutOfRange: "OUT_OF_RANGE",
	connect.CodeUnimplemented: "UNIMPLEMENTED", connect.CodeInternal: "INTERNAL", connect.CodeUnavailable: "UNAVAILABLE",
	connect.CodeDataLoss: "DATA_LOSS", connect.CodeUnauthenticated: "UNAUTHENTICATED",
}

// describeError returns the status of an error: its code and its message.
func describeError(err error) string {
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err.Error()
	}
	name := statusNames[e.Code()]
	if name == "" {
		name = fmt.Sprintf("status %d", e.Code())
	}
	text := strings.TrimSpace(sanitize.Text(strings.ToValidUTF8(e.Message(), "\uFFFD"), maxErrorText))
	if text == "" {
		return name
	}
	return name + ": " + text
}

// explain returns the status that the server sent for a call, with its details.
func (a *API) explain(err error) string {
	lines := []string{"gRPC " + describeError(err)}
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return lines[0]
	}
	for i, d := range e.Details() {
		if i == maxDetails {
			lines = append(lines, fmt.Sprintf("%d more details", len(e.Details())-i))
			break
		}
		lines = append(lines, sanitize.Line(d.Type()+" "+a.showDetail(d), maxErrorText))
	}
	return strings.Join(lines, "\n")
}

// showDetail returns a detail in JSON, or its size if its type is unknown.
func (a *API) showDetail(d *connect.ErrorDetail) string {
	t, err := a.files.types.FindMessageByURL(d.Type())
	var data json.RawMessage
	if err == nil {
		data, err = a.files.decode(newScale(maxValues, a.opts.MaxResponse, a.files.types), t.Descriptor(), d.Bytes())
	}
	if err != nil {
		return fmt.Sprintf("(%d bytes)", len(d.Bytes()))
	}
	return string(data)
}
