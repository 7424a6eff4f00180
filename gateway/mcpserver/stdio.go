package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxLine is the size in bytes of the largest message on stdin: the limit of HTTP and of the SDK.
	maxLine = mcp.DefaultMaxLineLength
	// maxBatch is the largest number of messages in a batch.
	maxBatch = 100
)

// stdioTransport is the transport of in and stdout. It answers lines that are not messages itself: the SDK would end the
// session for them.
func stdioTransport(in *Stdin) mcp.Transport { return newTransport(in, os.Stdout) } //nolint:forbidigo // in place of the SDK's transport, which takes the same two

func newTransport(in io.ReadCloser, out io.Writer) mcp.Transport {
	w := &lineWriter{out: out}
	return &mcp.IOTransport{Reader: &lineReader{in: bufio.NewReaderSize(in, 64<<10), closer: in, out: w}, Writer: w, MaxLineLength: maxLine + 1024}
}

// lineWriter serializes the lines of several writers.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

// Close leaves stdout open, as the SDK does.
func (*lineWriter) Close() error { return nil }

// lineReader passes on the lines that are messages and answers the others. Only one goroutine reads.
type lineReader struct {
	in      *bufio.Reader
	closer  io.Closer
	out     io.Writer
	rest    []byte // of a line that is a message
	version string // of the protocol, as requested by the client
}

// Close implements [io.Closer].
func (l *lineReader) Close() error { return l.closer.Close() }

// Read implements [io.Reader].
func (l *lineReader) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.line()
		if err != nil && !errors.Is(err, errLongLine) {
			return 0, err
		}
		if refusal := l.check(line, err); refusal != nil {
			if err := l.answer(refusal); err != nil {
				return 0, err
			}
			continue
		}
		l.rest = line
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

var errLongLine = errors.New("the line is too long")

// line returns the next line that is not blank, with one line feed. It skips a line that is too long and returns errLongLine.
func (l *lineReader) line() ([]byte, error) {
	for {
		var line []byte
		long := false
		for {
			part, err := l.in.ReadSlice('\n')
			if long = long || len(line)+len(part) > maxLine; !long {
				line = append(line, part...)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				if len(bytes.TrimSpace(line)) > 0 && errors.Is(err, io.EOF) {
					break // the last one, without a line feed
				}
				return nil, err
			}
		}
		if long {
			return nil, errLongLine
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return append(line, '\n'), nil
		}
	}
}

// lineError is the error response to a line that is not a message.
type lineError struct {
	id json.RawMessage
	jsonrpc.Error
}

// check returns why a line is not a message, nil for one that is.
func (l *lineReader) check(line []byte, err error) *lineError {
	switch {
	case err != nil:
		return invalidRequest(nil, fmt.Sprintf("the message is larger than %d MiB", maxLine>>20))
	case !utf8.Valid(line):
		return &lineError{Error: jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the line is not UTF-8"}}
	case !json.Valid(line):
		return &lineError{Error: jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the line is not a single JSON value"}}
	case line[0] == '[':
		return l.checkBatch(line)
	}
	message, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return invalidRequest(idOf(line), "the line is not a JSON-RPC message")
	}
	if r, ok := message.(*jsonrpc.Request); ok && r.Method == "initialize" && l.version == "" {
		var params struct {
			Version string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(r.Params, &params) // the SDK rejects a request without it
		l.version = params.Version
	}
	return nil
}

func (l *lineReader) checkBatch(line []byte) *lineError {
	if l.version != "2024-11-05" && l.version != "2025-03-26" { // the SDK would end the session
		return invalidRequest(nil, "batches are not supported since MCP 2025-06-18")
	}
	if problem := batchProblem(line); problem != "" {
		return invalidRequest(nil, problem)
	}
	var batch []json.RawMessage
	_ = json.Unmarshal(line, &batch) // it was checked to be a small array
	for _, one := range batch {
		if _, err := jsonrpc.DecodeMessage(one); err != nil {
			return invalidRequest(nil, "the batch contains an invalid JSON-RPC message")
		}
	}
	return nil
}

// batchProblem returns what is wrong with the size of a batch, "" for nothing or for other JSON. It stops reading at
// the limit, so that a large batch costs little.
func batchProblem(body []byte) string {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '[' {
		return ""
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil {
		return ""
	}
	count := 0
	for ; dec.More(); count++ {
		if count == maxBatch {
			return fmt.Sprintf("a batch has at most %d messages", maxBatch)
		}
		var one json.RawMessage
		if dec.Decode(&one) != nil {
			return "" // invalid JSON, which the caller detects
		}
	}
	if _, err := dec.Token(); err == nil && count == 0 {
		return "the batch is empty"
	}
	return ""
}

func invalidRequest(id json.RawMessage, message string) *lineError {
	return &lineError{id: id, Error: jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message}}
}

// idOf returns the ID of an invalid message, nil without one that a response can repeat.
func idOf(line []byte) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(line, &object) != nil {
		return nil
	}
	id := object["id"]
	if len(id) == 0 || id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') {
		return nil
	}
	return id
}

// marshal returns the response as it is sent.
func (r *lineError) marshal() []byte {
	id := r.id
	if id == nil {
		id = json.RawMessage("null")
	}
	return encode(object{"jsonrpc": encode("2.0"), "id": id, "error": encode(object{"code": encode(r.Code), "message": encode(r.Message)})})
}

func (l *lineReader) answer(r *lineError) error {
	_, err := l.out.Write(append(r.marshal(), '\n'))
	return err
}
