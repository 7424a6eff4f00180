package openapi

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"sallyport/gateway/upstream/webapi"
)

// serverOf returns the URL of the server of an operation: that of the settings, or else that of the document. All requests go to one
// host, as the credentials belong to it: an operation with a server on another host is no tool.
func (r *reader) serverOf(item, operation *object) (string, error) {
	main, err := r.documentServer(firstServer(r.root))
	own := firstServer(operation)
	if own == nil {
		own = firstServer(item)
	}
	if own == nil {
		if r.opts.Server != "" {
			return strings.TrimSuffix(r.opts.Server, "/"), nil
		}
		return main, err
	}
	there, ownErr := r.documentServer(own)
	switch {
	case ownErr != nil:
		return "", ownErr
	case err == nil && there == main && r.opts.Server != "":
		return strings.TrimSuffix(r.opts.Server, "/"), nil
	case r.opts.Server != "" || err != nil || hostOf(there) != hostOf(main):
		return "", fmt.Errorf("it has a server of its own, %s; add that as another upstream", show(there))
	}
	return there, nil
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return webapi.Origin(u)
}

// firstServer returns the first of the servers of a document, a path or an operation.
func firstServer(o *object) *object {
	all := o.List("servers")
	if len(all) == 0 {
		return nil
	}
	first, _ := all[0].(*object)
	return first
}

// documentServer returns the URL of a server of the document, which may be nil.
func (r *reader) documentServer(server *object) (string, error) {
	text := "/"
	if r.legacy {
		text = r.legacyServer()
	} else if server != nil {
		var err error
		if text, err = r.expand(server); err != nil {
			return "", err
		}
	}
	u, err := r.absolute(text)
	if err != nil {
		return "", errors.New("the URL of its server is invalid")
	}
	switch {
	case u.Host == "":
		return "", errors.New("the document names no server; set the url of the upstream")
	case u.Scheme != "https" && u.Scheme != "http":
		return "", errors.New("the URL of its server is neither https:// nor http://")
	case r.l.dir == nil && webapi.Origin(u) != r.l.origin:
		return "", fmt.Errorf("its server, %s, is another host than the document's; set the url of the upstream", show(u.Host))
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	return strings.TrimSuffix(u.String(), "/"), nil
}

// absolute parses the URL of a server, which may be relative to that of the document.
func (r *reader) absolute(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if isURL(r.opts.Document) {
		base, err := url.Parse(r.opts.Document)
		if err != nil {
			return nil, err
		}
		return base.ResolveReference(u), nil
	}
	if u.Scheme == "" && u.Host != "" {
		u.Scheme = "https"
	}
	return u, nil
}

// expand returns the URL of a server with its variables.
func (r *reader) expand(server *object) (string, error) {
	var missing string
	text := pathVariableOf(server.Text("url"), func(name string) string {
		if value, ok := r.opts.Variables[name]; ok {
			return value
		}
		v := server.Object("variables").Object(name)
		if v == nil || !v.Has("default") {
			missing = name
			return ""
		}
		return fmt.Sprint(v.Get("default"))
	})
	if missing != "" {
		return "", fmt.Errorf("the URL of its server has the variable %s without a value; set it in variables", show(missing))
	}
	return text, nil
}

func pathVariableOf(text string, value func(name string) string) string {
	return pathVariable.ReplaceAllStringFunc(text, func(m string) string { return value(m[1 : len(m)-1]) })
}

// legacyServer returns the URL of the server of a document in OpenAPI 2.0.
func (r *reader) legacyServer() string {
	scheme := ""
	for _, s := range r.root.Texts("schemes") {
		if scheme == "" || s == "https" {
			scheme = s
		}
	}
	base := r.root.Text("basePath")
	host := r.root.Text("host")
	if host == "" {
		if base == "" {
			base = "/"
		}
		return base
	}
	if scheme != "" {
		scheme += ":"
	}
	return scheme + "//" + host + base
}
