package workspaces

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
)

// WorkspaceInfo is a workspace that the caller can name.
type WorkspaceInfo struct {
	Name string `json:"name"`
	// Mapped says that it is a folder of the operator, ReadOnly that programs cannot change it.
	Mapped   bool `json:"mapped,omitempty"`
	ReadOnly bool `json:"read_only,omitempty"`
}

// WorkspaceFile is a file of a workspace.
type WorkspaceFile struct {
	// Path is slash-separated, below /workspace.
	Path string `json:"path"`
	// Size is in bytes.
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified,omitzero"`
	// Tag changes when the file does.
	Tag string `json:"tag"`
}

// MaxFile is the maximum size of a file that is written as a whole, in bytes; programs can write larger ones.
const MaxFile = maxEditSize

// maxFileList is the maximum number of listed files.
const maxFileList = 10_000

// ListWorkspaces returns the workspaces that the caller has, by name. Errors are *tool.Error.
func (s *Workspaces) ListWorkspaces(ctx context.Context) ([]WorkspaceInfo, error) {
	if s.opts.DataDir == "" {
		return nil, &tool.Error{Kind: tool.NotFound, Message: "no files are kept here: there is no data directory"}
	}
	all := map[string]WorkspaceInfo{}
	names, err := s.copies.names(ctx, s.folder(ctx))
	if err != nil {
		return nil, openError(err)
	}
	for _, name := range names {
		all[name] = WorkspaceInfo{Name: name}
	}
	for name := range s.opts.Settings.Load().Workspaces {
		if m, ok := s.Mapping(ctx, name); ok {
			all[name] = WorkspaceInfo{Name: name, Mapped: true, ReadOnly: m.Mode != config.ModeWrite}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b WorkspaceInfo) int { return strings.Compare(a.Name, b.Name) }), nil
}

// openExisting opens a workspace that exists.
func (s *Workspaces) openExisting(ctx context.Context, name string) (Space, error) {
	if s.copies.has(filepath.Join(s.folder(ctx), name)) {
		return s.openFiles(ctx, name)
	}
	all, err := s.ListWorkspaces(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all, func(w WorkspaceInfo) bool { return w.Name == name }) {
		return nil, &tool.Error{Kind: tool.NotFound, Message: "there is no workspace " + sanitize.Line(name, 64), Hint: "a program or a written file creates it"}
	}
	return s.openFiles(ctx, name)
}

// FilesOf returns the files of a workspace with a path prefix, sorted by path, at most 10,000, and whether there are more. Errors
// are *tool.Error.
func (s *Workspaces) FilesOf(ctx context.Context, name, prefix string) (list []WorkspaceFile, more bool, err error) {
	ws, err := s.openExisting(ctx, name)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = ws.Close() }()
	for f, err := range ws.Files() {
		if f.Path == "" {
			return nil, false, &tool.Error{Kind: tool.Internal, Message: "the workspace could not be listed", Hint: "try again", Err: err}
		}
		if err != nil || f.Folder || !strings.HasPrefix(f.Path, prefix) {
			continue
		}
		if len(list) == maxFileList {
			more = true
			break
		}
		list = append(list, fileInfo(f))
	}
	slices.SortFunc(list, func(a, b WorkspaceFile) int { return strings.Compare(a.Path, b.Path) })
	return list, more, nil
}

func fileInfo(f workspace.File) WorkspaceFile {
	sum := sha256.Sum256([]byte(f.Version))
	return WorkspaceFile{Path: f.Path, Size: f.Size, Modified: f.Modified, Tag: hex.EncodeToString(sum[:8])}
}

// FileContent opens a file of a workspace. Close the content. Errors are *tool.Error.
func (s *Workspaces) FileContent(ctx context.Context, name, path string) (WorkspaceFile, io.ReadCloser, error) {
	ws, err := s.openExisting(ctx, name)
	if err != nil {
		return WorkspaceFile{}, nil, err
	}
	if path, err = filePath(path); err != nil {
		return WorkspaceFile{}, nil, errors.Join(err, ws.Close())
	}
	f, err := ws.Open(path)
	if err != nil {
		err = fileError(path, err)
		_ = ws.Close()
		return WorkspaceFile{}, nil, err
	}
	return fileInfo(f), openFile{f.Content, ws}, nil
}

// openFile closes its workspace too.
type openFile struct {
	io.ReadCloser
	ws io.Closer
}

// Close implements [io.Closer].
func (o openFile) Close() error { return errors.Join(o.ReadCloser.Close(), o.ws.Close()) }

// ChangeFile writes a whole file of a workspace, creating it if necessary, or removes it if content is nil. With a tag it fails if the
// file has changed; "*" matches any existing file. The change is on disk on return. Errors are *tool.Error.
func (s *Workspaces) ChangeFile(ctx context.Context, name, path, tag string, content []byte) (WorkspaceFile, error) {
	open := s.openFiles
	if content == nil {
		open = s.openExisting
	}
	ws, err := open(ctx, name)
	if err != nil {
		return WorkspaceFile{}, err
	}
	defer func() { _ = ws.Close() }()
	if path, err = filePath(path); err != nil {
		return WorkspaceFile{}, err
	}
	for range writeTries {
		done, again, err := changeFile(ws, path, tag, content)
		if !again {
			return done, err
		}
	}
	return WorkspaceFile{}, &tool.Error{Kind: tool.Failed, Message: path + " is being changed by others all the time", Hint: "try again", Retryable: true}
}

// changeFile makes one attempt; again reports that the file was changed concurrently.
func changeFile(ws Space, path, tag string, content []byte) (done WorkspaceFile, again bool, err error) {
	old, err := stat(ws, path)
	there := err == nil
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || content == nil) {
		return done, false, fileError(path, err)
	}
	if tag != "" && (!there || tag != "*" && fileInfo(old).Tag != tag) {
		return done, false, &tool.Error{Kind: tool.Failed, Message: path + " is not as it was", Hint: "read it again", Err: ErrFileChanged}
	}
	change := workspace.File{Path: path, Version: old.Version, Executable: old.Executable, Gone: content == nil}
	if content != nil {
		change.Size, change.Content = int64(len(content)), io.NopCloser(bytes.NewReader(content))
	}
	updated, err := ws.Update(workspace.Changes(change))
	if err != nil {
		return done, false, writeError(path, err)
	}
	now, err := stat(ws, path)
	_, written := updated.Versions[path]
	if written || content == nil && errors.Is(err, fs.ErrNotExist) {
		return fileInfo(now), false, nil
	}
	if now.Version != old.Version {
		return done, true, nil
	}
	return done, false, &tool.Error{Kind: tool.Limit, Message: strings.Join(updated.Notes, "; "), Err: ErrFileRefused}
}

// ErrFileChanged says that a file was changed concurrently, ErrFileRefused that the workspace is full or rejects such a file.
var (
	ErrFileChanged = errors.New("the file was changed")
	ErrFileRefused = errors.New("the file was not taken")
)

func stat(ws Space, path string) (workspace.File, error) {
	f, err := ws.Open(path)
	if err == nil {
		_ = f.Content.Close()
	}
	return f, err
}

func fileError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &tool.Error{Kind: tool.NotFound, Message: "there is no file " + sanitize.Line(path, 300)}
	}
	return &tool.Error{Kind: tool.Invalid, Message: sanitize.Line(path, 300) + " cannot be read", Hint: "it may not be a regular file", Err: err}
}
