package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
)

func serveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "serve [flags]",
		Short: "be an MCP server on stdin and stdout",
		Long: `Serve speaks MCP on stdin and stdout, with the two tools search_tools and
execute_code. It is started by an MCP client and ends when the client closes
stdin or sends SIGINT or SIGTERM, with everything that it started.

The log goes to stderr. It has no arguments, no results and no secrets in it.
A mistake in upstreams.yaml ends it with status 2 before anything starts; an
upstream that is down does not end it.`,
		Example: `  claude mcp add sallyport -- sallyport serve --config "$PWD/upstreams.yaml"
  sallyport serve --log-level debug 2>sallyport.log`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context()) },
	}
}

func (a *app) serve(ctx context.Context) (err error) {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	log := a.logger(slog.LevelInfo)
	if isTerminal(a.stdin) {
		a.say(invitation(cfg))
	}
	g, err := gateway.Open(cfg, &gateway.Options{Logger: log, Version: buildVersion()})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, g.Close())
		log.Info("stopped")
	}()
	log.Info("serving", "config", cfg.Path, "upstreams", len(g.Upstreams()), "version", buildVersion())
	opts := &mcpserver.Options{Version: buildVersion()}
	if log.Enabled(ctx, slog.LevelDebug) {
		opts.Logger = log // it tells of every session, and calls being asked to stop an error
	}
	if err := mcpserver.ServeStdio(ctx, g, opts); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// invitation is for a person who started serve by hand.
func invitation(cfg *config.Config) string {
	self, err := os.Executable()
	if err != nil {
		self = "sallyport"
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		path = cfg.Path
	}
	return fmt.Sprintf("waiting for an MCP client on stdin; to add it to one: claude mcp add sallyport -- %s serve --config %s", self, path)
}
