package openapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/jsonobject"
	"sallyport/internal/sanitize"
)

const (
	maxNesting = 500 // levels of JSON in a response
)

// Call calls a tool and returns the result of tools/call. An error status and a response that is too
// large are results with isError. The error is an [*webapi.ArgumentError], or that of the transport.
func (a *API) Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	o := a.operations[name]
	if o == nil {
		return nil, webapi.Invalid("there is no tool %.80q", name)
	}
	req, err := a.request(ctx, o, args)
	if err != nil {
		return nil, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, webapi.WithoutURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return webapi.Failure(resp), nil
	}
	data, tooLarge, err := webapi.ReadBody(resp, a.opts.MaxResponse)
	if err != nil || tooLarge != nil {
		return tooLarge, err
	}
	return o.resultOf(resp, data), nil
}

// resultOf returns the result of a successful response. A body that is not as declared is returned as it is.
func (o *operation) resultOf(resp *http.Response, data []byte) json.RawMessage {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	trimmed := bytes.TrimSpace(data)
	switch {
	case len(trimmed) == 0 || o.method == http.MethodHead:
		return webapi.AppendJSON(nil, newObject("content", []any{webapi.TextBlock(o.emptyText(resp))}))
	case (isJSON(kind) || kind == "" || o.result != asFound) && json.Valid(trimmed) && jsonobject.Nesting(trimmed) <= maxNesting:
		return webapi.JSONResult(bytes.ToValidUTF8(trimmed, []byte("\uFFFD")), o.result == wrapped)
	case isText(kind, data):
		return webapi.AppendJSON(nil, newObject("content", []any{webapi.TextBlock(strings.ToValidUTF8(string(data), "\uFFFD"))}))
	}
	return webapi.AppendJSON(nil, newObject("content", []any{binaryBlock(resp, kind, data)}))
}

// emptyText describes a response without a body.
func (o *operation) emptyText(resp *http.Response) string {
	text := strings.TrimSpace(fmt.Sprintf("HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	if to := resp.Header.Get("Location"); to != "" {
		text += "\nLocation: " + sanitize.Line(to, 2000)
	}
	return text
}

func isText(kind string, data []byte) bool {
	if strings.HasPrefix(kind, "text/") || isJSON(kind) || kindOf(kind) == textBody {
		return true
	}
	return kind == "" && utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

// binaryBlock returns bytes as an image, a sound or a resource.
func binaryBlock(resp *http.Response, kind string, data []byte) *object {
	encoded := base64.StdEncoding.EncodeToString(data)
	if kind == "" {
		kind = "application/octet-stream"
	}
	for _, family := range []string{"image", "audio"} {
		if strings.HasPrefix(kind, family+"/") {
			return newObject("type", family, "data", encoded, "mimeType", kind)
		}
	}
	uri := *resp.Request.URL
	uri.RawQuery, uri.User = "", nil
	return newObject("type", "resource", "resource", newObject("uri", uri.String(), "mimeType", kind, "blob", encoded))
}
