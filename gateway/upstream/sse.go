package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/budget"
	"sallyport/gateway/upstream/webapi"
)

var (
	_ mcp.Connection = (*sseConn)(nil)

	errStreamEnded = errors.New("the server ended the stream of events")
	errNoStream    = errors.New("the server offers no stream of events")
)

// sseConn is the transport of revision 2024-11-05: the server sends everything on
// one stream of events. The first event has the URL for our messages. The SDK's
// transport accepts a URL of any origin, takes every event for a message, and does
// not return why the stream ended.
type sseConn struct {
	client     *http.Client
	maxMessage int64
	budget     *budget.Budget
	origin     string
	post       string // the URL for messages; set before the connection is returned

	incoming chan jsonrpc.Message
	closed   chan struct{}
	once     sync.Once
	err      error // set before closed is closed
}

// dialSSE opens the stream, which lasts until life ends, and waits for the URL for messages.
func dialSSE(ctx, life context.Context, d *originTransport, client *http.Client, endpoint string) (*sseConn, func(), error) {
	c := &sseConn{
		client: client, maxMessage: d.maxMessage, budget: d.budget, origin: d.origin,
		incoming: make(chan jsonrpc.Message, 16), closed: make(chan struct{}),
	}
	life, end := context.WithCancel(life)
	named := make(chan string, 1)
	var reading sync.WaitGroup
	reading.Go(func() { c.end(c.listen(life, endpoint, named)) })
	stop := func() {
		c.end(errClosed)
		end()
		reading.Wait()
	}
	select {
	case c.post = <-named:
		return c, stop, nil
	case <-c.closed:
		stop()
		return nil, nil, c.err
	case <-ctx.Done():
		stop()
		return nil, nil, ctx.Err()
	}
}

// listen reads the stream to its end and returns why it ended.
func (c *sseConn) listen(ctx context.Context, endpoint string, named chan<- string) error {
	ctx, refuse := context.WithCancelCause(ctx) // closing the body would wait for a pending read
	defer refuse(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !isStream(resp) {
		return fmt.Errorf("%w: %s", errNoStream, status(resp))
	}
	known := false
	err = readEvents(resp.Body, int(c.maxMessage), budget.Buffer{Budget: c.budget, Done: ctx.Done()}, func(e event) {
		switch {
		case e.name == "endpoint" && !known:
			known = true
			address, err := c.resolve(resp.Request.URL, string(e.data))
			if err != nil {
				refuse(err)
				return
			}
			named <- address
		case e.name == "" || e.name == "message":
			c.take(e.data)
		}
	})
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case !known:
		return errNoStream
	}
	return errStreamEnded
}

// resolve returns the URL for our messages from the endpoint event. It must be of the
// same origin, as messages contain keys and arguments.
func (c *sseConn) resolve(base *url.URL, ref string) (string, error) {
	address, err := base.Parse(ref)
	if err != nil {
		return "", errors.New("the server names no address for messages")
	}
	if origin := webapi.Origin(address); origin != c.origin {
		return "", fmt.Errorf("the server wants messages sent to %s, which is another origin", origin)
	}
	return address.String(), nil
}

func (c *sseConn) take(data []byte) {
	msg := parseMessage(bytes.TrimSpace(data))
	if msg == nil {
		return
	}
	select {
	case c.incoming <- msg:
	case <-c.closed:
	}
}

func (c *sseConn) end(why error) {
	c.once.Do(func() {
		c.err = why
		close(c.closed)
	})
}

// Read implements mcp.Connection.
func (c *sseConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-c.incoming:
		return msg, nil
	default:
	}
	select {
	case msg := <-c.incoming:
		return msg, nil
	case <-c.closed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case msg := <-c.incoming: // received before the end
		return msg, nil
	default:
		return nil, c.err
	}
}

// Write implements mcp.Connection.
func (c *sseConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.post, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 300 {
		return nil
	}
	said, _ := io.ReadAll(resp.Body) // made by the RoundTripper
	if answer, ok := parseMessage(said).(*jsonrpc.Response); ok && answer.Error != nil {
		return answer.Error
	}
	return errors.New(status(resp))
}

// Close implements mcp.Connection.
func (c *sseConn) Close() error {
	c.end(errClosed)
	return nil
}

// SessionID implements mcp.Connection.
func (c *sseConn) SessionID() string { return "" }
