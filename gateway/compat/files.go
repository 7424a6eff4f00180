package compat

import (
	"context"
	"errors"
	"io"
	"path"
	"path/filepath"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/gateway/workspaces"
	"sallyport/internal/tool"
)

// files are the files of the caller's workspace.
type files struct{ gateway Gateway }

// inSandbox is where programs see them.
const inSandbox = "/workspace"

// name returns the name of the workspace.
func (files) name(ctx context.Context) (string, error) { return workspaces.Name(ctx, "") }

// folder returns the path of the workspace for clients: that of a mapped folder on the host, else that in sandboxes.
func (f files) folder(ctx context.Context) string {
	if name, err := f.name(ctx); err == nil {
		if mapped, ok := f.gateway.Mapping(ctx, name); ok {
			return mapped.Path
		}
	}
	return inSandbox
}

// full returns the full path of a file for clients.
func (f files) full(ctx context.Context, name string) string {
	return filepath.Join(f.folder(ctx), filepath.FromSlash(name))
}

// relative returns the path below the workspace of a path from a client: a full one as full returns it, or a relative one.
func (f files) relative(ctx context.Context, name string) (string, error) {
	for _, folder := range []string{f.folder(ctx), inSandbox} {
		if rest, ok := strings.CutPrefix(path.Clean(name), folder+"/"); ok {
			return rest, nil
		}
	}
	if clean := path.Clean(name); name == "" || path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", errOutside
	}
	return path.Clean(name), nil
}

var errOutside = errors.New("Access denied: path outside workspace") //nolint:staticcheck // the text of the server that this replaces

// read returns the content of a file.
func (f files) read(ctx context.Context, name string) (content, tag string, err error) {
	space, err := f.name(ctx)
	if err != nil {
		return "", "", err
	}
	file, data, err := f.gateway.FileContent(ctx, space, name)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = data.Close() }()
	if file.Size > workspaces.MaxFile {
		return "", "", &tool.Error{Kind: tool.Limit, Message: name + " is too large", Hint: "read it in a program"}
	}
	all, err := io.ReadAll(io.LimitReader(data, workspaces.MaxFile))
	return string(all), file.Tag, err
}

// write creates or replaces a file.
func (f files) write(ctx context.Context, name, content string) error {
	space, err := f.name(ctx)
	if err != nil {
		return err
	}
	_, err = f.gateway.ChangeFile(ctx, space, name, "", []byte(content))
	return err
}

// appendTries is the number of attempts to append to a file that others change at the same time.
const appendTries = 10

// add appends a text to a file, exactly as it is.
func (f files) add(ctx context.Context, name, more string) error {
	space, err := f.name(ctx)
	for range appendTries {
		if err != nil {
			return err
		}
		var content, tag string
		if content, tag, err = f.read(ctx, name); err != nil {
			return err
		}
		if _, err = f.gateway.ChangeFile(ctx, space, name, tag, []byte(content+more)); err == nil {
			return nil
		}
		if !errors.Is(err, workspaces.ErrFileChanged) {
			return err
		}
		err = nil
	}
	return &tool.Error{Kind: tool.Failed, Message: name + " is being changed by others all the time", Hint: "try again", Retryable: true}
}

// list returns the paths of the files below a folder, "." being all.
func (f files) list(ctx context.Context, below string) ([]string, error) {
	space, err := f.name(ctx)
	if err != nil {
		return nil, err
	}
	prefix := ""
	if below != "." {
		prefix = below + "/"
	}
	found, _, err := f.gateway.FilesOf(ctx, space, prefix)
	if err != nil && (space != execution.DefaultWorkspace || tool.AsError(err).Kind != tool.NotFound) {
		return nil, err
	}
	paths := []string{} // also for a default workspace that does not exist yet
	for _, file := range found {
		paths = append(paths, file.Path)
	}
	return paths, nil
}
