package server

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
)

// subsets are the endpoints of the settings in force, for MCP over HTTP.
type subsets struct{ *service }

// Admits implements [mcpserver.Subsets].
func (s subsets) Admits(ctx context.Context, name string) bool {
	return s.gateway.View.Admits(ctx, name)
}

// Open implements [mcpserver.Subsets].
func (s subsets) Open(name string) mcpserver.Servers {
	mode := func(client, version string) config.Mode {
		chosen := config.Mode("")
		if endpoint, ok := s.gateway.Endpoints.Named(name); ok {
			chosen = endpoint.Mode()
		}
		return cmp.Or(config.Mode(s.mode), chosen, s.modeNow(client, version))
	}
	of := mcpserver.Servers{Direct: s.direct(name, mode), Mode: mode}
	if s.servesCode() {
		opts := s.tools()
		opts.Face = nil // that of another server knows all tools
		of.Tools = mcpserver.New(s.rateLimitedService(name), opts)
	}
	return of
}

// logEndpoints logs the URL of each endpoint of the settings.
func (s *service) logEndpoints(site string) {
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Endpoints)) {
		s.log.Info("endpoint", "name", name, "url", site+"/mcp/"+name)
	}
}
