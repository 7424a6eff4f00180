package mcpserver

import "sallyport/internal/config"

// workspaceProperty is the parameter that chooses a workspace, where there is more to know of than the default one.
func workspaceProperty(opts *Options) string {
	if !opts.Profiles.Has(config.ProfileFiles) && len(opts.Workspaces) == 0 {
		return ""
	}
	return `"workspace":{"type":"string"},`
}
