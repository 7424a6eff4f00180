package cli

import (
	"context"
	"log/slog"

	"sallyport/gateway"
	"sallyport/gateway/compat"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
)

// ToolOptions returns the options of the MCP server of a gateway with these settings.
func ToolOptions(cfg *config.Config, g *gateway.Gateway, log *slog.Logger) *mcpserver.Options {
	return &mcpserver.Options{
		Version: BuildVersion(), Logger: ProtocolLog(log), Environments: cfg.Environments, Packages: g.Environments, Catalog: g.Service(), Stats: g.Service(), Choices: g.Environments,
		Face: compat.New(cfg.Compat, CompatGateway(g)), Profiles: cfg.Profiles, Workspaces: cfg.Workspaces, Files: g.Workspaces, Skills: g.Service(), Privacy: g.Privacy,
		Upstreams: g.View.Visible, Resources: g.Service(),
	}
}

// CompatGateway returns the parts of a gateway that the faces of other servers need.
func CompatGateway(g *gateway.Gateway) compat.Gateway {
	s := g.Service()
	return compat.Gateway{Programs: s, Files: s, Folders: s, Catalog: s, Search: s, Skills: s, Packages: s, Privacy: g.Privacy}
}

// ProtocolLog returns the logger for MCP protocol messages: log if its level is debug, else nil. It is for debugging
// only, as it logs every session, and logs a normal shutdown as an error.
func ProtocolLog(log *slog.Logger) *slog.Logger {
	if log.Enabled(context.Background(), slog.LevelDebug) {
		return log
	}
	return nil
}
