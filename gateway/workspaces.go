package gateway

import (
	"context"
	"path/filepath"

	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
)

// workspace opens what /workspace holds for whoever asks, to be closed after the
// program; nil where nothing is kept. Each principal has one of their own.
func (g *Gateway) workspace(ctx context.Context, limits sandbox.Limits) (*workspace.Dir, error) {
	if g.opts.DataDir == "" {
		return nil, nil
	}
	dir := filepath.Join(g.opts.DataDir, "workspaces", workspace.Folder(tool.Principal(ctx)), "default")
	ws, err := workspace.Open(dir, workspace.Options{Bytes: limits.Workspace, Inodes: limits.Inodes, Sync: true})
	if err != nil {
		return nil, &tool.Error{Kind: tool.Internal, Message: "the workspace could not be opened", Hint: "try again; if it stays, the operator's log says why", Err: err}
	}
	return ws, nil
}
