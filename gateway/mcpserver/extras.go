package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/config"
)

// extra is a tool in addition to the two, which a profile of the settings
// enables. Each profile has a file: files.go, skills.go, privacy.go and so on.
type extra struct {
	tool *mcp.Tool
	// handle gets the raw arguments; an error becomes a result that the model can read.
	handle func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error)
}

// add registers an extra with a server.
func (e extra) add(tools *Tools) {
	tools.AddTool(e.tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		defer reportProgress(ctx, req)()
		r := tools.newRequest(ctx, req)
		ctx, cancel := detach(ctx)
		defer cancel()
		return resultOrError(e.handle(context.WithValue(ctx, requestKey{}, r), req.Params.Arguments))
	})
}

// requestKey is the context key of the request that an extra handles.
type requestKey struct{}

// extras returns the tools that the options enable, profile by profile. A profile's tools
// are included where the options have an implementation.
func extras(verbs Service, opts *Options) []extra {
	var all []extra
	if opts.Packages != nil && (installable(opts.Environments) || opts.Profiles.Has(config.ProfileEnvironments)) {
		all = append(all, packages{opts.Packages, opts.Environments}.extras()...)
	}
	for _, p := range []struct {
		name     string
		answered bool
		extras   func() []extra
	}{
		{config.ProfileEnvironments, opts.Choices != nil, environmentTools{opts.Choices, opts.Environments}.extras},
		{config.ProfileStats, opts.Stats != nil, stats{opts.Stats}.extras},
		{config.ProfileCatalog, opts.Catalog != nil, catalogTools{verbs, opts.Catalog}.extras},
		{config.ProfileFiles, opts.Files != nil, files{verbs, opts.Files, opts.Environments}.extras},
		{config.ProfileSkills, opts.Skills != nil, skillTools{opts.Skills}.extras},
		{config.ProfileTasks, opts.Tasks != nil, taskTools{opts.Tasks}.extras},
		{config.ProfilePrivacy, opts.Privacy != nil, privacy{opts.Privacy}.extras},
	} {
		if p.answered && opts.Profiles.Has(p.name) {
			all = append(all, p.extras()...)
		}
	}
	return all
}
