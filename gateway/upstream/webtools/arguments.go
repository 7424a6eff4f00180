package webtools

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"sallyport/internal/hostrule"
	"sallyport/internal/suggest"
	"sallyport/internal/webaccess"
)

type object = map[string]any

// arguments are those of both tools. At most one of Text and JSON is set.
type arguments struct {
	URL       string            `json:"url"`
	Method    string            `json:"method"`
	Headers   map[string]string `json:"headers"`
	JSON      json.RawMessage   `json:"json"`
	Text      *string           `json:"text"`
	AnyStatus bool              `json:"any_status"`
}

var common = object{
	"url":        object{"type": "string", "description": "https://HOST/PATH, with the query"},
	"headers":    object{"type": "object", "additionalProperties": object{"type": "string"}},
	"any_status": object{"type": "boolean", "description": "return also responses that are no success; else they are errors"},
}

// response is the schema of results. The members are those that any client of HTTP has.
var response = object{
	"type": "object", "required": []string{"status", "url", "headers", "encoding", "body"},
	"properties": object{
		"status": object{"type": "integer"}, "url": object{"type": "string"}, "headers": object{"type": "object", "additionalProperties": object{"type": "string"}, "description": "names in lower case"},
		"encoding": object{"type": "string", "enum": []string{"json", "text", "base64"}, "description": "of body"}, "body": object{"description": "parsed JSON, text, or Base64 of other data"},
	},
}

func getTool(hosts string) object {
	return object{
		"name": toolGet, "description": "Fetches a URL by HTTP from " + hosts + ".", "annotations": object{"readOnlyHint": true, "openWorldHint": true},
		"inputSchema": object{"type": "object", "properties": common, "required": []string{"url"}, "additionalProperties": false}, "outputSchema": response,
	}
}

func sendTool(methods []string, hosts string) object {
	properties := object{
		"method": object{"type": "string", "enum": methods},
		"json":   object{"description": "a body of JSON"},
		"text":   object{"type": "string", "description": "another body; set content-type in headers"},
	}
	maps.Copy(properties, common)
	return object{
		"name": toolSend, "description": "Sends an HTTP request that can change data to " + hosts + ".", "annotations": object{"readOnlyHint": false, "openWorldHint": true},
		"inputSchema": object{"type": "object", "properties": properties, "required": []string{"url", "method"}, "additionalProperties": false}, "outputSchema": response,
	}
}

// parse reads the arguments of a tool.
func parse(name string, raw json.RawMessage) (a arguments, err error) {
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, errors.New("the arguments do not have the types of the tool's parameters")
	}
	switch {
	case name == toolGet && (a.Method != "" || a.JSON != nil || a.Text != nil):
		return a, errors.New("get sends no method and no body; use send")
	case name == toolGet:
		a.Method = webaccess.Get
	case name != toolSend:
		return a, fmt.Errorf("there is no tool %.80q", name)
	case a.Method == webaccess.Get:
		return a, errors.New("use get for GET requests")
	case a.JSON != nil && a.Text != nil:
		return a, errors.New("json and text are both a body; pass one of them")
	}
	return a, nil
}

// request returns the request of the arguments.
func (a arguments) request(ctx context.Context) (*http.Request, error) {
	var body io.Reader
	kind := ""
	switch {
	case a.JSON != nil:
		body, kind = bytes.NewReader(a.JSON), "application/json"
	case a.Text != nil:
		body = strings.NewReader(*a.Text)
	}
	req, err := http.NewRequestWithContext(ctx, a.Method, a.URL, body)
	if err != nil {
		return nil, errors.New("url is not a URL, or method not a method")
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for name, value := range a.Headers {
		if problem := hostrule.Field(name, value); problem != "" {
			return nil, errors.New(problem)
		}
		req.Header.Set(name, value)
	}
	return req, nil
}

// allowed returns the host of a request, or an error that says why the settings do not allow it.
func allowed(access webaccess.Access, req *http.Request) (webaccess.Host, error) {
	u := req.URL
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	host, _, ok := access.Find(name, port(u))
	known := access.Names(access.Methods()...)
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || name == "":
		return host, errors.New("url must start with https:// and a host")
	case u.User != nil:
		return host, errors.New("url must not have a user and password")
	case !ok:
		text := fmt.Sprintf("host %.100q is not allowed; allowed are %s", u.Host, names(known))
		if near := suggest.Of(u.Host, known); near != "" {
			text += fmt.Sprintf("; did you mean %s?", near)
		}
		return host, errors.New(text)
	case u.Scheme != host.Scheme():
		return host, fmt.Errorf("write %s:// for this host and port", host.Scheme())
	case !host.Allows(req.Method):
		return host, fmt.Errorf("%s to %s is not allowed; allowed are %s", req.Method, host.Name, strings.Join(host.Methods, ", "))
	}
	u.Host = strings.Replace(u.Host, u.Hostname(), name, 1)
	return host, nil
}

// port returns the port of a URL.
func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// decode returns a body and its encoding.
func decode(contentType string, data []byte) (content any, encoding string) {
	kind, _, _ := mime.ParseMediaType(contentType) // "" is any other
	if (kind == "application/json" || strings.HasSuffix(kind, "+json")) && json.Valid(data) && utf8.Valid(data) {
		return json.RawMessage(data), "json"
	}
	if utf8.Valid(data) {
		return string(data), "text"
	}
	return base64.StdEncoding.EncodeToString(data), "base64"
}
