// Package webapi has what upstreams share if their tools are requests to an HTTP API: [Credentials] of the settings, what
// redirects are followed, and results of tools/call in JSON.
package webapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"sallyport/internal/jsonobject"
	"sallyport/internal/sanitize"
)

const (
	maxErrorText = 4000    // characters of the body of an error
	maxRepeated  = 1 << 20 // bytes of JSON that is also given as text
)

// An ArgumentError reports arguments that cannot be sent.
type ArgumentError struct{ Reason string }

// Error returns the reason.
func (e *ArgumentError) Error() string { return e.Reason }

// Invalid returns an [*ArgumentError].
func Invalid(format string, args ...any) error { return &ArgumentError{fmt.Sprintf(format, args...)} }

// Credentials are what the settings send with each request to an API.
type Credentials struct {
	// Headers and Query are sent with every request.
	Headers, Query map[string]string
	// Username and Password are sent with every request if one is not "".
	Username, Password string
}

// Authorize adds the headers, query and user to a request.
func (c *Credentials) Authorize(req *http.Request) {
	for name, value := range c.Headers {
		if strings.EqualFold(name, "Host") {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	if c.Username != "" || c.Password != "" {
		req.SetBasicAuth(c.Username, c.Password)
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(c.Query)) {
		pairs = append(pairs, Escape(name)+"="+Escape(c.Query[name]))
	}
	req.URL.RawQuery = JoinQuery(req.URL.RawQuery, pairs)
}

// Escape escapes a text for a query: a space is %20.
func Escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// JoinQuery appends escaped pairs to the query of a URL.
func JoinQuery(query string, pairs []string) string {
	if query != "" {
		pairs = append([]string{query}, pairs...)
	}
	return strings.Join(pairs, "&")
}

// Origin returns scheme, host and port of a URL.
func Origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// WithoutURL returns the reason of an error of a request: its text has the URL, which may have a secret.
func WithoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// FollowRedirect is a CheckRedirect of [http.Client] that follows redirects within the server of a request, with the same method. Other
// responses are the result of the call.
func FollowRedirect(req *http.Request, via []*http.Request) error {
	if Origin(req.URL) != Origin(via[0].URL) || req.Method != via[0].Method {
		return http.ErrUseLastResponse
	}
	if len(via) > 5 {
		return errors.New("too many redirects")
	}
	return nil
}

// ReadBody reads the body of a response. One of more than limit bytes is a result of tools/call that says so.
func ReadBody(resp *http.Response, limit int64) (data []byte, tooLarge json.RawMessage, err error) {
	data, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, nil, WithoutURL(err)
	}
	if int64(len(data)) > limit {
		return nil, Failed(fmt.Sprintf("the response has more than %d bytes; ask for less: a page, a filter, fewer fields", limit)), nil
	}
	return data, nil, nil
}

// Failure returns the result of a call that the server refuses: status, and the beginning of the body.
func Failure(resp *http.Response) json.RawMessage { return Failed(FailureText(resp)) }

// FailureText returns what [Failure] says.
func FailureText(resp *http.Response) string {
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
	return text
}

// Failed returns a result of tools/call that is an error.
func Failed(text string) json.RawMessage {
	return AppendJSON(nil, jsonobject.Of("content", []any{TextBlock(text)}, "isError", true))
}

// TextBlock returns a content block of text.
func TextBlock(text string) *jsonobject.Object { return jsonobject.Of("type", "text", "text", text) }

// JSONResult returns a result of JSON: structured content is an object, so another value is wrapped if the tool declares that.
func JSONResult(data []byte, wrap bool) json.RawMessage {
	text := string(data)
	if len(data) > maxRepeated {
		text = fmt.Sprintf("%d bytes of JSON, see structuredContent", len(data))
	}
	result := jsonobject.Of()
	switch {
	case wrap:
		result.Set("structuredContent", jsonobject.Of("result", json.RawMessage(data)))
	case data[0] == '{':
		result.Set("structuredContent", json.RawMessage(data))
	default:
		text = string(data)
	}
	result.Set("content", []any{TextBlock(text)})
	return AppendJSON(nil, result)
}

// AppendJSON appends a value in JSON: *[jsonobject.Object], []any, [json.RawMessage], and what encoding/json takes. It does not escape HTML.
func AppendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case *jsonobject.Object:
		b = append(b, '{')
		for i, key := range v.Keys() {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(AppendJSON(b, key), ':')
			b = AppendJSON(b, v.Get(key))
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, one := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = AppendJSON(b, one)
		}
		return append(b, ']')
	case json.RawMessage:
		return append(b, v...)
	case string:
		return appendText(b, v)
	}
	data, err := json.Marshal(v)
	if err != nil { // a number out of range of JSON, which YAML has
		return append(b, "null"...)
	}
	return append(b, data...)
}

// appendText appends a string in JSON, without escaping HTML.
func appendText(b []byte, s string) []byte {
	w := bytes.NewBuffer(b)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string is always valid
	return bytes.TrimRight(w.Bytes(), "\n")
}

// List returns a list of strings as a JSON list.
func List(texts []string) []any {
	all := make([]any, len(texts))
	for i, t := range texts {
		all[i] = t
	}
	return all
}
