package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/agent"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/tokens"
)

// modeCount is what a client shows a model at the start in each mode, with some servers.
type modeCount struct {
	servers, tools int
	// tokens has those of the names, descriptions and input schemas, by mode.
	tokens map[config.Mode]int
}

// modeSizes are the numbers of servers.
func modeSizes() []int { return []int{1, 10, 36} }

// printModes prints a table of the modes with the smallest catalogues of a folder.
func printModes(ctx context.Context, o *options, stdout io.Writer) error {
	all, err := agent.ReadCatalogues(o.catalog)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(x, y agent.Catalogue) int { return size(x) - size(y) })
	if _, err := fmt.Fprintf(stdout, "| servers | tools | code | search | direct |\n| ---: | ---: | ---: | ---: | ---: |\n"); err != nil {
		return err
	}
	for _, n := range modeSizes() {
		if n > len(all) {
			_, err := fmt.Fprintf(stdout, "skipped: %d servers, there are %d in %s\n", n, len(all), o.catalog)
			return err
		}
		c, err := countModes(ctx, all[:n])
		if err != nil {
			return fmt.Errorf("count modes: %w", err)
		}
		if _, err := fmt.Fprintf(stdout, "| %d | %d | %d | %d | %d |\n", c.servers, c.tools, c.tokens[config.ModeCode], c.tokens[config.ModeSearch], c.tokens[config.ModeDirect]); err != nil {
			return err
		}
	}
	return nil
}

// size returns the bytes of a catalogue's definitions.
func size(c agent.Catalogue) (n int) {
	for _, raw := range c.Tools {
		n += len(raw)
	}
	return n
}

// countModes counts the lists of tools of a gateway in front of catalogues.
func countModes(ctx context.Context, catalogues []agent.Catalogue) (c modeCount, err error) {
	f, err := openGateway(ctx, catalogues)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c = modeCount{servers: len(catalogues), tools: len(f.ids), tokens: map[config.Mode]int{}}
	tools := mcpserver.New(f.Service(), nil)
	defer tools.Close()
	if c.tokens[config.ModeCode], err = countList(ctx, func(t mcp.Transport) error { _, err := tools.Connect(ctx, t, nil); return err }); err != nil {
		return c, err
	}
	for _, mode := range []config.Mode{config.ModeDirect, config.ModeSearch} {
		direct := mcpserver.NewDirect(f.Service(), &mcpserver.DirectOptions{Search: f.Service(), Mode: func(string, string) config.Mode { return mode }})
		c.tokens[mode], err = countList(ctx, func(t mcp.Transport) error { _, err := direct.Connect(ctx, t); return err })
		direct.Close()
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// countList counts what a client shows a model of the tools of a server.
func countList(ctx context.Context, connect func(mcp.Transport) error) (int, error) {
	counter, err := tokens.O200k()
	if err != nil {
		return 0, err
	}
	client, server := mcp.NewInMemoryTransports()
	if err := connect(server); err != nil {
		return 0, err
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, client, nil)
	if err != nil {
		return 0, err
	}
	total := 0
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return 0, errors.Join(err, session.Close())
		}
		data, err := json.Marshal(map[string]any{"name": t.Name, "description": t.Description, "inputSchema": t.InputSchema})
		if err != nil {
			return 0, errors.Join(err, session.Close())
		}
		n, err := counter.Count(string(data))
		if err != nil {
			return 0, errors.Join(err, session.Close())
		}
		total += n
	}
	return total, session.Close()
}
