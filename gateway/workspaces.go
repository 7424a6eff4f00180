package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"sallyport/gateway/execution"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
)

const (
	// maxWorkspaces is how many a principal can have.
	maxWorkspaces = 100
)

// space is an open workspace. Close it.
type space interface {
	sandbox.Workspace
	Close() error
}

// workspaceName says which workspace is meant: the one that was asked for, else that of the request.
func workspaceName(ctx context.Context, asked string) (string, error) {
	name := cmp.Or(asked, tool.Workspace(ctx), execution.DefaultWorkspace)
	if err := workspace.Name(name); err != nil {
		return "", &tool.Error{
			Kind: tool.Invalid, Message: fmt.Sprintf("workspace cannot be %q", plain.Line(name, 80)),
			Hint: "use 1 to 64 of a-z, 0-9, _ and -, a letter or digit first",
		}
	}
	return name, nil
}

// workspace opens what /workspace holds for whoever asks, to be closed after the
// program; nil where nothing is kept. Each principal has some of their own, by names.
// careful has it keep what somebody else changes meanwhile.
func (g *Gateway) workspace(ctx context.Context, name string, limits sandbox.Limits, careful bool) (space, error) {
	all := ""
	if g.opts.DataDir != "" {
		all = filepath.Join(g.opts.DataDir, "workspaces", workspace.Folder(tool.Principal(ctx)))
	}
	if m, ok := g.mapping(ctx, name); ok {
		return g.mapped(name, m, all, limits)
	}
	if all == "" {
		return nil, nil
	}
	if err := roomForWorkspace(all, name); err != nil {
		return nil, err
	}
	opts := ownWorkspace(limits)
	opts.Careful = careful
	ws, err := workspace.Open(filepath.Join(all, name), opts)
	if err != nil {
		return nil, unopened(err)
	}
	return ws, nil
}

// workspaceOf opens what /workspace holds for a program.
func (g *Gateway) workspaceOf(ctx context.Context, p execution.Program, limits sandbox.Limits) (space, error) {
	if p.Folder == "" {
		return g.workspace(ctx, p.Workspace, limits, false)
	}
	ws, err := workspace.Open(p.Folder, ownWorkspace(limits))
	if err != nil {
		return nil, unopened(err)
	}
	return ws, nil
}

// ownWorkspace bounds a workspace of a principal's.
func ownWorkspace(limits sandbox.Limits) workspace.Options {
	return workspace.Options{Bytes: limits.Workspace, Inodes: limits.Inodes, Sync: true}
}

func unopened(err error) error {
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		return &tool.Error{Kind: tool.Internal, Message: "the workspace could not be opened: the data directory cannot be written", Hint: "the operator's `sallyport doctor` says why", Err: err}
	}
	return &tool.Error{Kind: tool.Internal, Message: "the workspace could not be opened", Hint: "try again; if it stays, the operator's log says why", Err: err}
}

// roomForWorkspace reports that there are too many workspaces for another one.
func roomForWorkspace(all, name string) error {
	if _, err := os.Lstat(filepath.Join(all, name)); !errors.Is(err, fs.ErrNotExist) {
		return nil // whoever opens it sees what else is wrong
	}
	names := workspaceNames(all)
	if len(names) < maxWorkspaces {
		return nil
	}
	return &tool.Error{
		Kind: tool.Limit, Message: fmt.Sprintf("there are %d workspaces already", len(names)),
		Hint: "use one of them: " + strings.Join(names[:10], ", ") + ", ...; or the operator removes some",
	}
}

// workspaceNames are those that a principal has, sorted.
func workspaceNames(all string) []string {
	entries, _ := os.ReadDir(all) // none is none
	var names []string
	for _, e := range entries {
		if e.IsDir() && workspace.Name(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return names
}
