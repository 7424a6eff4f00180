package mcpserver

import (
	"context"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeConn serves direct mode on a connection, until it or ctx ends.
func ServeConn(ctx context.Context, verbs Gateway, opts *DirectOptions, conn io.ReadWriteCloser) error {
	d := NewDirect(verbs, opts)
	defer d.Close()
	s, err := d.Connect(ctx, &mcp.IOTransport{Reader: conn, Writer: conn})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // Wait returns its error
	defer stop()
	return s.Wait()
}
