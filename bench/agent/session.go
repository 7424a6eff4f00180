package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/tokencount"
)

// session is one server over stdio, with the tools that it listed.
type session struct {
	*mcp.ClientSession
	tools []listedTool
}

// listedTool is a tool as a server lists it, as far as it matters to a model or to a search.
type listedTool struct {
	Name, Title, Description  string
	InputSchema, OutputSchema json.RawMessage
}

// connect starts a server and asks for its tools.
func connect(ctx context.Context, transport *mcp.CommandTransport) (*session, error) {
	said := &tail{}
	transport.Command.Stderr = said
	client := mcp.NewClient(&mcp.Implementation{Name: "sallyport-bench", Version: "1"}, nil)
	s := &session{}
	var err error
	if s.ClientSession, err = client.Connect(ctx, transport, nil); err != nil {
		return nil, fmt.Errorf("%w%s", contextCause(ctx, err), said.note())
	}
	if s.tools, err = s.list(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("%w%s", contextCause(ctx, err), said.note())
	}
	return s, nil
}

func (s *session) list(ctx context.Context) (tools []listedTool, err error) {
	if s.InitializeResult().Capabilities.Tools == nil {
		return nil, nil
	}
	for t, err := range s.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		data, err := marshal(t)
		if err != nil {
			return nil, err
		}
		l, err := readTool(data)
		if err != nil {
			return nil, err
		}
		tools = append(tools, l)
	}
	return tools, nil
}

// marshal is json.Marshal without its escapes of <, > and &, which are tokens that no client writes.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}

func readTool(definition json.RawMessage) (l listedTool, err error) {
	if err := json.Unmarshal(definition, &l); err != nil {
		return l, fmt.Errorf("read definition: %w", err)
	}
	var compact bytes.Buffer
	if len(l.InputSchema) > 0 {
		err = json.Compact(&compact, l.InputSchema)
		l.InputSchema = compact.Bytes()
	}
	return l, err
}

// definition is the tool as clients show it: without what is said of its output, and without annotations.
func (l listedTool) definition(name string) tokencount.Definition {
	return tokencount.Definition{Name: name, Description: l.Description, InputSchema: l.InputSchema}
}

// call makes a call. What the server refuses is a result, as clients show it to models.
func (s *session) call(ctx context.Context, name string, args json.RawMessage) (tokencount.Result, error) {
	got, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	var refused *jsonrpc.Error
	switch {
	case ctx.Err() == nil && errors.As(err, &refused):
		return tokencount.Result{Text: refused.Error(), Error: true}, nil
	case err != nil:
		return tokencount.Result{}, err
	}
	return tokencount.Result{Text: resultText(got), Error: got.IsError}, nil
}

// resultText returns what clients put into the context: the text blocks. Structured content repeats them as JSON, and
// clients leave it out if there is text (Claude Code and others do); so it counts only if there is none.
func resultText(got *mcp.CallToolResult) string {
	var blocks []string
	for _, c := range got.Content {
		blocks = append(blocks, block(c))
	}
	if len(blocks) == 0 && got.StructuredContent != nil {
		if data, err := marshal(got.StructuredContent); err == nil {
			return string(data)
		}
	}
	return strings.Join(blocks, "\n")
}

// block is the text of a block. What a picture costs depends on the model, so it is a line that names it, in all modes.
func block(c mcp.Content) string {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		return fmt.Sprintf("[image %s, %d bytes]", c.MIMEType, len(c.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("[audio %s, %d bytes]", c.MIMEType, len(c.Data))
	case *mcp.ResourceLink:
		return fmt.Sprintf("[resource %s: %s]", c.Name, c.URI)
	case *mcp.EmbeddedResource:
		if c.Resource.Blob != nil {
			return fmt.Sprintf("[resource %s, %s, %d bytes]", c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob))
		}
		return fmt.Sprintf("[resource %s] %s", c.Resource.URI, c.Resource.Text)
	}
	return fmt.Sprintf("[%T]", c)
}

// tail keeps the end of a server's stderr, to explain a failed start.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-500):]
	return len(p), nil
}

func (t *tail) note() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.text) == 0 {
		return ""
	}
	return fmt.Sprintf("; it said: %q", t.text)
}
