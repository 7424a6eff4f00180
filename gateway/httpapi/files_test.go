package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/workspaces"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

func (house) ListWorkspaces(ctx context.Context) ([]workspaces.WorkspaceInfo, error) {
	if tool.Principal(ctx) == "bob" {
		return nil, &tool.Error{Kind: tool.NotFound, Message: "no files are kept here"}
	}
	return []workspaces.WorkspaceInfo{{Name: "w"}}, nil
}

func (house) FilesOf(_ context.Context, name, prefix string) ([]workspaces.WorkspaceFile, bool, error) {
	if name != "w" {
		return nil, false, &tool.Error{Kind: tool.NotFound, Message: "there is no workspace"}
	}
	return []workspaces.WorkspaceFile{{Path: prefix + "a.html", Size: 5, Tag: "t1"}}, true, nil
}

func (h house) FileContent(ctx context.Context, name, path string) (workspaces.WorkspaceFile, io.ReadCloser, error) {
	list, _, err := h.FilesOf(ctx, name, "")
	if err != nil || path != list[0].Path {
		return workspaces.WorkspaceFile{}, nil, &tool.Error{Kind: tool.NotFound, Message: "there is no file"}
	}
	return list[0], io.NopCloser(strings.NewReader("<b>\x00!")), nil
}

func (house) ChangeFile(_ context.Context, _, path, tag string, content []byte) (workspaces.WorkspaceFile, error) {
	switch {
	case tag == "t0":
		return workspaces.WorkspaceFile{}, &tool.Error{Kind: tool.Failed, Message: "it is not as it was", Err: workspaces.ErrFileChanged}
	case path == "full":
		return workspaces.WorkspaceFile{}, &tool.Error{Kind: tool.Limit, Message: "no room", Err: workspaces.ErrFileRefused}
	case path == "none":
		return workspaces.WorkspaceFile{}, &tool.Error{Kind: tool.NotFound, Message: "there is no file"}
	}
	return workspaces.WorkspaceFile{Path: path, Size: int64(len(content)), Tag: "t2"}, nil
}

const fileRoute = "/workspaces/{name}/files/{path}"

var filePromises = []promise{
	{status: 200, who: "ada", route: "GET /workspaces"},
	{status: 404, who: "bob", route: "GET /workspaces"},
	{status: 200, who: "ada", route: "GET /workspaces/{name}/files", path: "/workspaces/w/files?prefix=d/"},
	{status: 404, who: "ada", route: "GET /workspaces/{name}/files", path: "/workspaces/x/files"},
	{status: 200, who: "ada", route: "GET " + fileRoute, path: "/workspaces/w/files/a.html"},
	{status: 404, who: "ada", route: "GET " + fileRoute, path: "/workspaces/w/files/b"},
	{status: 200, who: "ada", route: "PUT " + fileRoute, path: "/workspaces/w/files/d/b", body: "\xff"},
	{status: 404, who: "ada", route: "PUT " + fileRoute, path: "/workspaces/w/files/none"},
	{status: 412, who: "ada", route: "PUT " + fileRoute, path: "/workspaces/w/files/b", ifMatch: `"t0"`},
	{status: 413, who: "ada", route: "PUT " + fileRoute, path: "/workspaces/w/files/b", body: strings.Repeat("x", workspaces.MaxFile+1)},
	{status: 507, who: "ada", route: "PUT " + fileRoute, path: "/workspaces/w/files/full"},
	{status: 200, who: "ada", route: "DELETE " + fileRoute, path: "/workspaces/w/files/b"},
	{status: 404, who: "ada", route: "DELETE " + fileRoute, path: "/workspaces/w/files/none"},
	{status: 412, who: "ada", route: "DELETE " + fileRoute, path: "/workspaces/w/files/b", ifMatch: `"t0"`},
}

// TestFiles: what a program has written is never a page of ours, and who may read may not write.
func TestFiles(t *testing.T) {
	t.Parallel()
	w := send(t, promise{who: "ada", route: "GET " + fileRoute, path: "/workspaces/w/files/a.html"})
	header := w.Header()
	if w.Body.String() != "<b>\x00!" || header.Get("Content-Type") != "application/octet-stream" || header.Get("X-Content-Type-Options") != "nosniff" ||
		header.Get("Content-Disposition") != "attachment; filename=a.html" || !strings.HasPrefix(header.Get("Content-Security-Policy"), "sandbox") || header.Get("ETag") != `"t1"` {
		t.Errorf("a page: %v %q", header, w.Body)
	}
	for _, method := range []string{"PUT", "DELETE"} {
		if w := send(t, promise{who: "only read", route: method + " " + fileRoute, path: "/workspaces/w/files/a"}); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "this needs scope files") {
			t.Errorf("%s by who may read: %d %s", method, w.Code, w.Body)
		}
	}
}

// TestRealFiles: a file is written, read, listed and removed in a real workspace; others have none of it, and no path leads out.
func TestRealFiles(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	g, err := gateway.Open(&cfg, &gateway.Options{DataDir: t.TempDir(), NoPool: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	api := httpapi.New(g.Service(), nil)
	tag := ""
	for _, test := range []struct {
		who, method, path, body, ifMatch string
		status                           int
		says                             string
	}{
		{"ada", "GET", "/workspaces/w/files", "", "", 404, "there is no workspace w"},
		{"ada", "PUT", "/workspaces/w/files/d/a.bin", "\x00\xff", "*", 412, "is not as it was"},
		{"ada", "PUT", "/workspaces/w/files/d/a.bin", "\x00\xff", "", 200, `"path":"d/a.bin","size":2`},
		{"ada", "GET", "/workspaces/w/files/d/a.bin", "", "", 200, "\x00\xff"},
		{"ada", "GET", "/workspaces/w/files?prefix=d/", "", "", 200, `{"files":[{"path":"d/a.bin","size":2`},
		{"ada", "GET", "/workspaces/w/files?prefix=e", "", "", 200, `{"files":[]}`},
		{"ada", "GET", "/workspaces", "", "", 200, `{"workspaces":[{"name":"w"}]}`},
		{"bob", "GET", "/workspaces/w/files/d/a.bin", "", "", 404, "there is no workspace w"},
		{"ada", "PUT", "/workspaces/w/files/d/a.bin", "", "TAG", 200, `"size":0`},
		{"ada", "PUT", "/workspaces/w/files/d/a.bin", "x", "TAG", 412, "is not as it was"},
		{"ada", "PUT", "/workspaces/w/files/a%00b", "x", "", 400, "invalid file name"},
		{"ada", "PUT", "/workspaces/w/files/..%2f..%2fout", "x", "", 400, "invalid file name"},
		{"ada", "PUT", "/workspaces/W%2F..%2F..%2Fx/files/a", "x", "", 400, "invalid workspace name"},
		{"ada", "DELETE", "/workspaces/w/files/d/none", "", "", 404, "there is no file"},
		{"ada", "DELETE", "/workspaces/w/files/d/a.bin", "", "", 200, `"path":"d/a.bin"`},
		{"ada", "GET", "/workspaces/w/files/d/a.bin", "", "", 404, "there is no file"},
	} {
		r := httptest.NewRequestWithContext(as(t.Context(), test.who), test.method, test.path, strings.NewReader(test.body))
		if test.ifMatch == "TAG" {
			test.ifMatch = tag
		}
		r.Header.Set("If-Match", test.ifMatch)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.says) {
			t.Errorf("%s %s %s: %d %s", test.who, test.method, test.path, w.Code, w.Body)
		}
		if got := w.Header().Get("ETag"); got != "" {
			tag = got
		}
	}
}
