package httpapi

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"sallyport/gateway/workspaces"
	"sallyport/internal/tool"
)

// Files are the workspaces of the caller.
type Files interface {
	ListWorkspaces(ctx context.Context) ([]workspaces.WorkspaceInfo, error)
	FilesOf(ctx context.Context, name, prefix string) (list []workspaces.WorkspaceFile, more bool, err error)
	// FileContent opens a file. Close the content.
	FileContent(ctx context.Context, name, path string) (workspaces.WorkspaceFile, io.ReadCloser, error)
	// ChangeFile writes a file, or removes it for nil content; with a tag only if the file has that tag.
	ChangeFile(ctx context.Context, name, path, tag string, content []byte) (workspaces.WorkspaceFile, error)
}

// WorkspaceList is what GET /workspaces gives.
type WorkspaceList struct {
	// Workspaces are sorted by name.
	Workspaces []workspaces.WorkspaceInfo `json:"workspaces"`
}

func (a *api) workspaces(r *http.Request) (WorkspaceList, error) {
	list, err := a.service.ListWorkspaces(r.Context())
	if list == nil {
		list = []workspaces.WorkspaceInfo{}
	}
	return WorkspaceList{Workspaces: list}, err
}

// FileList is what GET /workspaces/{name}/files gives.
type FileList struct {
	// Files are sorted by path.
	Files []workspaces.WorkspaceFile `json:"files"`
	// More says that there are more than 10,000: use a prefix.
	More bool `json:"more,omitempty"`
}

func (a *api) files(r *http.Request) (FileList, error) {
	list, more, err := a.service.FilesOf(r.Context(), r.PathValue("name"), queryOf(r).text("prefix"))
	if list == nil {
		list = []workspaces.WorkspaceFile{}
	}
	return FileList{Files: list, More: more}, err
}

// readFile sends the bytes of a file, as a download that a browser never renders.
func (a *api) readFile(w http.ResponseWriter, r *http.Request) error {
	f, content, err := a.service.FileContent(r.Context(), r.PathValue("name"), r.PathValue("path"))
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("ETag", strconv.Quote(f.Tag))
	if tagOf(r, "If-None-Match") == f.Tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(f.Path)}))
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	header.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = io.CopyBuffer(deadlineWriter{http.NewResponseController(w), w}, io.LimitReader(content, f.Size), make([]byte, 64<<10)) // the client may be gone
	}
	return nil
}

// deadlineWriter writes with a deadline for each piece.
type deadlineWriter struct {
	control *http.ResponseController
	w       http.ResponseWriter
}

// Write implements [io.Writer].
func (p deadlineWriter) Write(data []byte) (int, error) {
	return writeWithDeadline(p.control, p.w, data)
}

// tagOf returns the tag in a header of a request, "" without one.
func tagOf(r *http.Request, header string) string {
	return strings.Trim(strings.TrimPrefix(strings.TrimSpace(r.Header.Get(header)), "W/"), `"`)
}

// writeFile writes the body to a file.
func (a *api) writeFile(r *http.Request) (workspaces.WorkspaceFile, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return workspaces.WorkspaceFile{}, &tool.Error{Kind: tool.Invalid, Message: "the file is too large, or did not arrive", Hint: "a program can write larger ones", Err: err}
	}
	if data == nil {
		data = []byte{}
	}
	return a.changeFile(r, data)
}

// removeFile removes a file and returns its path.
func (a *api) removeFile(r *http.Request) (workspaces.WorkspaceFile, error) {
	return a.changeFile(r, nil)
}

func (a *api) changeFile(r *http.Request, data []byte) (workspaces.WorkspaceFile, error) {
	f, err := a.service.ChangeFile(r.Context(), r.PathValue("name"), r.PathValue("path"), tagOf(r, "If-Match"), data)
	if err == nil && data == nil {
		f = workspaces.WorkspaceFile{Path: r.PathValue("path")}
	}
	return f, err
}

// fileStatus returns the status of an error of a file change, 0 if it follows from the error's kind.
func fileStatus(err error) int {
	switch {
	case errors.Is(err, workspaces.ErrFileChanged):
		return http.StatusPreconditionFailed
	case errors.Is(err, workspaces.ErrFileRefused):
		return http.StatusInsufficientStorage
	}
	return 0
}
