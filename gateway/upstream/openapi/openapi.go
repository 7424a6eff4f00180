package openapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/sanitize"
)

// Options say which document to read, and how to reach the API.
type Options struct {
	// Document is the URL of the document or the path of its file.
	Document string
	// Server is the URL that paths are appended to; "" is the first server of the document.
	Server string
	// Variables are values of the variables in the URL of the document's server.
	Variables map[string]string
	// Credentials are sent with every request. A parameter that they set is no argument.
	webapi.Credentials
	// Include and Exclude choose operations: "tag:GLOB", "path:GLOB", or a glob of operationIds.
	Include, Exclude []string
	// Transport sends requests to the API; nil is http.DefaultTransport.
	Transport http.RoundTripper
	// Documents reads documents from URLs; nil is http.DefaultTransport.
	Documents http.RoundTripper
	// MaxResponse bounds a response, in bytes; 0 is 64 MiB.
	MaxResponse int64
}

// API is an API whose operations can be called. It is safe for concurrent use.
type API struct {
	// Title and Version are those of the document.
	Title, Version string
	// Skipped are the operations that are no tools, with the reason, and defects of the document that were repaired.
	Skipped []string

	opts        Options
	client      *http.Client
	operations  map[string]*operation
	definitions []json.RawMessage
}

// Load reads a document. ctx bounds the time for that.
func Load(ctx context.Context, opts Options) (*API, error) {
	if opts.MaxResponse <= 0 {
		opts.MaxResponse = 64 << 20
	}
	l, doc, err := openMain(ctx, &opts)
	if err != nil {
		return nil, err
	}
	defer l.close()
	r, err := newReader(l, doc, &opts)
	if err != nil {
		return nil, err
	}
	all, err := r.operations()
	if err != nil {
		return nil, err
	}
	info := r.root.Object("info")
	a := &API{Title: sanitize.Line(info.Text("title"), 100), Version: sanitize.Line(fmt.Sprint(info.Get("version")), 50), opts: opts, operations: map[string]*operation{}}
	if err := a.define(r, all); err != nil {
		return nil, err
	}
	if len(a.operations) == 0 {
		return nil, noOperations(r.skipped)
	}
	a.Skipped = r.skipped
	a.client = &http.Client{Transport: opts.Transport, CheckRedirect: webapi.FollowRedirect}
	return a, nil
}

// noOperations returns the error of a document without a tool.
func noOperations(skipped []string) error {
	if len(skipped) > 0 {
		return fmt.Errorf("the OpenAPI document has no operation that can be called: %s", skipped[0])
	}
	return fmt.Errorf("the OpenAPI document has no operation, or include and exclude leave none")
}

// define makes the definitions of the tools.
func (a *API) define(r *reader, all []*operation) error {
	size := 0
	for _, o := range all {
		definition, err := r.definition(o)
		if isLimit(err) {
			return err
		}
		if err == nil && len(definition) > maxDefinition {
			err = fmt.Errorf("its definition would have %d bytes", len(definition))
		}
		if err != nil {
			r.skip(o.method, o.path, err)
			continue
		}
		if size += len(definition); size > maxOffered {
			return beyond("has tools of more than %d MiB; choose some with include, by tag: or path:", maxOffered>>20)
		}
		o.at = place{}
		for _, p := range o.params {
			p.schema = place{}
		}
		if o.body != nil {
			o.body.schema = place{}
		}
		a.operations[o.name] = o
		a.definitions = append(a.definitions, definition)
	}
	for _, err := range r.l.notes {
		r.skipped = append(r.skipped, sanitize.Line(err.Error(), 300))
	}
	return nil
}

// Names returns the names of the tools, sorted.
func (a *API) Names() []string { return slices.Sorted(maps.Keys(a.operations)) }

// Definitions returns the definitions of the tools, as in the result of tools/list. They must not be modified.
func (a *API) Definitions() []json.RawMessage { return a.definitions }

// documents returns the transport for documents: it sends the settings' headers if the document is at the API's own origin.
func (o *Options) documents() http.RoundTripper {
	base := o.Documents
	if base == nil {
		base = http.DefaultTransport
	}
	at, err := url.Parse(o.Document)
	server, err2 := url.Parse(o.Server)
	if err != nil || err2 != nil || o.Server == "" || webapi.Origin(at) != webapi.Origin(server) {
		return base
	}
	return &credentialed{base, o, webapi.Origin(at)}
}

// credentialed adds the settings' credentials to requests to one origin.
type credentialed struct {
	base   http.RoundTripper
	opts   *Options
	origin string
}

// RoundTrip implements [http.RoundTripper].
func (c *credentialed) RoundTrip(req *http.Request) (*http.Response, error) {
	if webapi.Origin(req.URL) == c.origin {
		req = req.Clone(req.Context())
		c.opts.Authorize(req)
	}
	return c.base.RoundTrip(req)
}
