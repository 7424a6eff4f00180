// Package workspaces opens the file trees that outlive programs: those of principals, by name, and folders of the host mapped by the settings.
package workspaces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
)

const (
	// maxWorkspaces is the maximum number per principal.
	maxWorkspaces = 100
)

// Space is an open workspace. Close it.
type Space interface {
	sandbox.Workspace
	Close() error
}

// Options are the dependencies of [Workspaces]. The gateway's own files cannot be mapped.
type Options struct {
	// DataDir stores workspaces; with "" none are stored.
	DataDir string
	// CacheDir and LockFile are files of the gateway.
	CacheDir, LockFile string
	// Records is the store. If several gateways use it, it has the workspaces, and DataDir has copies of them; nil for none.
	Records *store.Store
	// Settings are the settings in force.
	Settings config.Source
	// Directory has the groups of principals.
	Directory *access.Directory
	// Watch wraps a workspace that is opened for the file tools.
	Watch func(ctx context.Context, ws Space, name string) Space
	// Logger is for the operator.
	Logger *slog.Logger
}

// Workspaces opens the workspaces of principals, and folders of the host mapped by the settings. It is safe for concurrent use.
type Workspaces struct {
	opts   Options
	copies *copies // nil: the data directory has the workspaces
	notes  shownNotes
}

// New returns the workspaces in a data directory, and in a store that gateways share.
func New(opts Options) (*Workspaces, error) {
	s := &Workspaces{opts: opts}
	if opts.DataDir == "" {
		return s, nil
	}
	var err error
	s.copies, err = openCopies(opts)
	return s, err
}

// folder returns the directory of the caller's workspaces, "" without a data directory.
func (s *Workspaces) folder(ctx context.Context) string {
	if s.opts.DataDir == "" {
		return ""
	}
	return filepath.Join(s.opts.DataDir, workspacesFolder, workspace.Folder(tool.Principal(ctx)))
}

// workspacesFolder is where the data directory has workspaces: a folder for each principal, in it a folder for each workspace.
const workspacesFolder = "workspaces"

// limits returns the limits in the settings.
func (s *Workspaces) limits() sandbox.Limits {
	return execution.Program{}.Limits(s.opts.Settings.Load().Sandbox)
}

// Name returns the name of a workspace: asked, or else that of the request, or else the default.
func Name(ctx context.Context, asked string) (string, error) {
	name := cmp.Or(asked, tool.Workspace(ctx), execution.DefaultWorkspace)
	if err := workspace.Name(name); err != nil {
		return "", &tool.Error{
			Kind: tool.Invalid, Message: fmt.Sprintf("invalid workspace name %q", sanitize.Line(name, 80)),
			Hint: "use 1 to 64 of a-z, 0-9, _ and -, a letter or digit first",
		}
	}
	return name, nil
}

// Open opens a workspace of the caller, to be closed after the program; nil without
// a data directory. Each principal has its own workspaces. careful preserves concurrent
// changes of others.
func (s *Workspaces) Open(ctx context.Context, name string, limits sandbox.Limits, careful bool) (Space, error) {
	all := s.folder(ctx)
	if m, ok := s.Mapping(ctx, name); ok {
		return s.openMapped(name, m, all, limits)
	}
	if all == "" {
		return nil, nil
	}
	if err := s.checkWorkspaceCount(ctx, all, name); err != nil {
		return nil, err
	}
	opts := workspaceOptions(limits)
	opts.Careful = careful
	opts.Copy = s.copies.of(filepath.Join(all, name))
	ws, err := workspace.Open(filepath.Join(all, name), opts)
	if err != nil {
		return nil, openError(err)
	}
	if err := s.copies.refresh(ctx, ws, careful); err != nil {
		return nil, openError(errors.Join(err, ws.Close()))
	}
	return ws, nil
}

// OpenFor opens the workspace of a program.
func (s *Workspaces) OpenFor(ctx context.Context, p execution.Program, limits sandbox.Limits) (Space, error) {
	if p.Folder == "" {
		return s.Open(ctx, p.Workspace, limits, false)
	}
	ws, err := workspace.Open(p.Folder, workspaceOptions(limits))
	if err != nil {
		return nil, openError(err)
	}
	return ws, nil
}

// workspaceOptions returns the options of a principal's workspace.
func workspaceOptions(limits sandbox.Limits) workspace.Options {
	return workspace.Options{Bytes: limits.Workspace, Inodes: limits.Inodes, Sync: true}
}

func openError(err error) error {
	if down := toolcall.Unavailable(err); down != nil {
		return down
	}
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		return &tool.Error{Kind: tool.Internal, Message: "the workspace could not be opened: the data directory cannot be written", Hint: "the operator's `sallyport doctor` says why", Err: err}
	}
	return &tool.Error{Kind: tool.Internal, Message: "the workspace could not be opened", Hint: "try again; if it stays, the operator's log says why", Err: err}
}

// checkWorkspaceCount returns an error if a new workspace would exceed the maximum number.
func (s *Workspaces) checkWorkspaceCount(ctx context.Context, all, name string) error {
	if _, err := os.Lstat(filepath.Join(all, name)); !errors.Is(err, fs.ErrNotExist) {
		return nil // other errors occur again when it is opened
	}
	names, err := s.copies.names(ctx, all)
	if err != nil {
		return openError(err)
	}
	if len(names) < maxWorkspaces || slices.Contains(names, name) {
		return nil
	}
	return &tool.Error{
		Kind: tool.Limit, Message: fmt.Sprintf("there are %d workspaces already", len(names)),
		Hint: "use one of them: " + strings.Join(names[:10], ", ") + ", ...; or the operator removes some",
	}
}

// workspaceNames returns the names of a principal's workspaces, sorted.
func workspaceNames(all string) []string {
	entries, _ := os.ReadDir(all) // a missing directory has none
	var names []string
	for _, e := range entries {
		if e.IsDir() && workspace.Name(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return names
}

// Usage describes the usage of the caller's workspace, "" without a data directory.
func (s *Workspaces) Usage(ctx context.Context, limits sandbox.Limits) (string, error) {
	name, err := Name(ctx, "")
	if err != nil {
		return "", err
	}
	ws, err := s.Open(ctx, name, limits, false)
	if err != nil || ws == nil {
		return "", err
	}
	defer func() { _ = ws.Close() }()
	var size, count int64
	for f, err := range ws.Files() {
		if err != nil && f.Path != "" {
			continue // neither file nor folder
		}
		if err != nil {
			return "", err
		}
		size, count = size+f.Size, count+1
	}
	return fmt.Sprintf("/workspace: %v of %v, %d of %d files and folders", config.Size(size), config.Size(limits.Workspace), count, limits.Inodes), nil
}
