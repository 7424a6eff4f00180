package openapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"sallyport/internal/jsonobject"
	"sallyport/internal/sanitize"
)

const (
	maxErrorText = 4000    // characters of the body of an error
	maxRepeated  = 1 << 20 // bytes of JSON that is also given as text
	maxNesting   = 500     // levels of JSON in a response
)

// Call calls a tool and returns the result of tools/call. An error status and a response that is too
// large are results with isError. The error is an [*ArgumentError], or that of the transport.
func (a *API) Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	o := a.operations[name]
	if o == nil {
		return nil, invalid("there is no tool %.80q", name)
	}
	req, err := a.request(ctx, o, args)
	if err != nil {
		return nil, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return failure(resp), nil
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, a.opts.MaxResponse+1))
	if err != nil {
		return nil, withoutURL(err)
	}
	if int64(len(data)) > a.opts.MaxResponse {
		return failed(fmt.Sprintf("the response has more than %d bytes; ask for less: a page, a filter, fewer fields", a.opts.MaxResponse)), nil
	}
	return o.resultOf(resp, data), nil
}

// failure returns the result of a call that the server refuses: status, and the beginning of the body.
func failure(resp *http.Response) json.RawMessage {
	text := strings.TrimSpace(fmt.Sprintf("HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	head, _ := io.ReadAll(io.LimitReader(resp.Body, 4*maxErrorText)) // what there is of it
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode < 400 {
		text += ": the server redirects to " + sanitize.Line(to, 2000) + ", which is not followed"
	} else if body := sanitize.Text(strings.ToValidUTF8(string(head), "\uFFFD"), maxErrorText); strings.TrimSpace(body) != "" {
		text += ": " + strings.TrimSpace(body)
	}
	if wait := resp.Header.Get("Retry-After"); wait != "" {
		text += "\nRetry-After: " + sanitize.Line(wait, 60)
	}
	return failed(text)
}

func failed(text string) json.RawMessage {
	return appendJSON(nil, newObject("content", []any{textBlock(text)}, "isError", true))
}

func textBlock(text string) *object { return newObject("type", "text", "text", text) }

// resultOf returns the result of a successful response. A body that is not as declared is returned as it is.
func (o *operation) resultOf(resp *http.Response, data []byte) json.RawMessage {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	trimmed := bytes.TrimSpace(data)
	switch {
	case len(trimmed) == 0 || o.method == http.MethodHead:
		return appendJSON(nil, newObject("content", []any{textBlock(o.emptyText(resp))}))
	case (isJSON(kind) || kind == "" || o.result != asFound) && json.Valid(trimmed) && jsonobject.Nesting(trimmed) <= maxNesting:
		return o.jsonResult(bytes.ToValidUTF8(trimmed, []byte("\uFFFD")))
	case isText(kind, data):
		return appendJSON(nil, newObject("content", []any{textBlock(strings.ToValidUTF8(string(data), "\uFFFD"))}))
	}
	return appendJSON(nil, newObject("content", []any{binaryBlock(resp, kind, data)}))
}

// emptyText describes a response without a body.
func (o *operation) emptyText(resp *http.Response) string {
	text := strings.TrimSpace(fmt.Sprintf("HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	if to := resp.Header.Get("Location"); to != "" {
		text += "\nLocation: " + sanitize.Line(to, 2000)
	}
	return text
}

// jsonResult returns a result of JSON: structured content is an object, so another value is wrapped if the tool declares that.
func (o *operation) jsonResult(data []byte) json.RawMessage {
	text := string(data)
	if len(data) > maxRepeated {
		text = fmt.Sprintf("%d bytes of JSON, see structuredContent", len(data))
	}
	result := newObject()
	switch {
	case o.result == wrapped:
		result.Set("structuredContent", newObject("result", json.RawMessage(data)))
	case data[0] == '{':
		result.Set("structuredContent", json.RawMessage(data))
	default:
		text = string(data)
	}
	result.Set("content", []any{textBlock(text)})
	return appendJSON(nil, result)
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
