package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"sallyport/gateway/upstream/webapi"
)

// request returns the request of a call.
func (a *API) request(ctx context.Context, o *operation, raw json.RawMessage) (*http.Request, error) {
	args, err := o.arguments(raw)
	if err != nil {
		return nil, err
	}
	path, err := o.expandPath(args)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(o.server + path)
	if err != nil {
		return nil, webapi.Invalid("the arguments make an invalid URL")
	}
	server, err := url.Parse(o.server)
	if err != nil || webapi.Origin(at) != webapi.Origin(server) {
		return nil, webapi.Invalid("the arguments make a URL of another host")
	}
	content, kind, err := o.content(args)
	if err != nil {
		return nil, webapi.Invalid("%s", err.Error())
	}
	req, err := http.NewRequestWithContext(ctx, o.method, at.String(), nil)
	if err != nil {
		return nil, webapi.Invalid("the arguments make an invalid request")
	}
	if kind != "" {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("Accept", "application/json, */*;q=0.8")
	req.Header.Set("User-Agent", "sallyport")
	if err := o.addParameters(req, args); err != nil {
		return nil, err
	}
	a.opts.Authorize(req)
	return req, nil
}

func (o *operation) content(args *object) ([]byte, string, error) {
	if o.body == nil {
		return nil, "", nil
	}
	return o.body.encode(args)
}

// arguments parses the arguments. A parameter that is null is left out.
func (o *operation) arguments(raw json.RawMessage) (*object, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	v, err := parseJSON(raw, nil)
	args, ok := v.(*object)
	if err != nil || !ok {
		return nil, webapi.Invalid("the arguments must be a JSON object")
	}
	for _, name := range args.Keys() {
		if !o.takes(name) {
			return nil, webapi.Invalid("unknown argument %.80q", name)
		}
	}
	for _, p := range o.params {
		if args.Has(p.name) && args.Get(p.name) == nil {
			args.Remove(p.name)
		}
		if p.required && !args.Has(p.name) {
			return nil, webapi.Invalid("the argument %s is missing", p.name)
		}
	}
	return args, nil
}

func (o *operation) takes(name string) bool {
	if o.body != nil && (name == o.body.argument && !o.body.flat || o.body.flat && slices.Contains(o.body.members, name)) {
		return true
	}
	return slices.ContainsFunc(o.params, func(p *parameter) bool { return p.name == name })
}

// expandPath puts the arguments into the path. A value cannot change which operation is called: it is not empty and has no
// segment "." or "..".
func (o *operation) expandPath(args *object) (string, error) {
	var bad error
	values := map[string]string{}
	for _, p := range o.params {
		if p.in != "path" {
			continue
		}
		v := args.Get(p.name)
		text := p.inPath(v)
		if p.asJSON {
			text = url.PathEscape(string(webapi.AppendJSON(nil, v)))
		}
		if plain(v) == "" || climbs(v) {
			bad = webapi.Invalid("the argument %s cannot be empty, or have a segment . or ..", p.name)
		}
		values[p.wire] = text
	}
	path := pathVariableOf(o.path, func(name string) string { return values[name] })
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			bad = webapi.Invalid("the arguments make a path with the segment %s", segment)
		}
	}
	return escapeTemplate(path), bad
}

// climbs reports whether a value has a segment that a server may take for a step in the path, also after decoding it once more.
func climbs(v any) bool {
	text := plain(v)
	if decoded, err := url.PathUnescape(text); err == nil {
		text += "/" + decoded
	}
	return slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return r == '/' || r == '\\' }), func(s string) bool { return s == "." || s == ".." })
}

// escapeTemplate escapes the characters of a document's path that end the path of a URL.
func escapeTemplate(path string) string {
	return strings.NewReplacer("?", "%3F", "#", "%23", " ", "%20").Replace(path)
}

// addParameters adds the parameters in the query, headers and cookies.
func (o *operation) addParameters(req *http.Request, args *object) error {
	var query, cookies []string
	for _, p := range o.params {
		if !args.Has(p.name) {
			continue
		}
		v := args.Get(p.name)
		switch p.in {
		case "query":
			query = append(query, p.inQuery(v)...)
		case "header":
			text := simple(v, p.explode, ",", func(s string) string { return s })
			if p.asJSON {
				text = string(webapi.AppendJSON(nil, v))
			}
			if strings.ContainsFunc(text, isControl) {
				return webapi.Invalid("the argument %s cannot have a control character: it is a header", p.name)
			}
			req.Header.Set(p.wire, text)
		case "cookie":
			cookies = append(cookies, formPairs(p.wire, v, "form", p.explode, webapi.Escape)...)
		}
	}
	req.URL.RawQuery = webapi.JoinQuery(req.URL.RawQuery, query)
	if len(cookies) > 0 {
		req.Header.Set("Cookie", strings.Join(cookies, "; "))
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
