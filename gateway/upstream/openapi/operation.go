package openapi

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
)

// operation is an operation of the document: what is needed to call it.
type operation struct {
	id, name     string // operationId, and the tool's name
	method, path string // GET, /pets/{id}
	tags         []string
	summary      string
	description  string
	deprecated   bool
	server       string // the URL that the path is appended to
	params       []*parameter
	body         *body
	result       resultForm
	paged        bool // its response has a link to the next page

	at place // the operation; only while the document is read
}

// parameter is a parameter in the path, the query, a header or a cookie.
type parameter struct {
	name, wire  string // of the argument, and as it is sent
	in          string
	style       string
	explode     bool
	reserved    bool // characters such as / are sent as they are
	asJSON      bool
	required    bool
	description string
	schema      place
}

var methods = []string{"get", "put", "post", "delete", "patch", "head", "options"}

// reader reads the operations of one document.
type reader struct {
	l       *loader
	opts    *Options
	doc     *document
	root    *object
	legacy  bool // OpenAPI 2.0
	modern  bool // OpenAPI 3.1
	choice  *choice
	skipped []string
	cache   map[cacheKey]*converted
}

func newReader(l *loader, doc *document, opts *Options) (*reader, error) {
	root, ok := doc.root.(*object)
	if !ok {
		return nil, fmt.Errorf("%s is not an OpenAPI document: it is not an object", show(doc.name))
	}
	r := &reader{l: l, opts: opts, doc: doc, root: root, cache: map[cacheKey]*converted{}}
	version := fmt.Sprint(root.Get("openapi"))
	switch {
	case strings.HasPrefix(version, "3.0"):
	case strings.HasPrefix(version, "3."):
		r.modern = true
	case strings.HasPrefix(fmt.Sprint(root.Get("swagger")), "2"):
		r.legacy = true
	default:
		return nil, fmt.Errorf("%s is not an OpenAPI document: it has neither openapi: 3.x nor swagger: 2.0", show(doc.name))
	}
	var err error
	r.choice, err = newChoice(opts.Include, opts.Exclude)
	return r, err
}

// skip notes an operation that cannot be a tool.
func (r *reader) skip(method, path string, err error) {
	r.skipped = append(r.skipped, sanitize.Line(fmt.Sprintf("%s %s: %v", strings.ToUpper(method), path, err), 300))
}

// operations reads the operations that the settings choose. Those that are invalid are skipped.
func (r *reader) operations() ([]*operation, error) {
	var all []*operation
	paths := place{r.doc, r.root.Get("paths")}
	for _, path := range paths.object().Keys() {
		if !strings.HasPrefix(path, "/") {
			continue // an extension
		}
		item, err := r.l.resolve(paths.in(path))
		if isLimit(err) {
			return nil, err
		}
		if err != nil {
			r.skip("*", path, err)
			continue
		}
		for _, method := range methods {
			if item.object().Object(method) == nil {
				continue
			}
			o, err := r.operation(item, method, path)
			if isLimit(err) {
				return nil, err
			}
			if err != nil {
				r.skip(method, path, err)
			} else if o != nil {
				all = append(all, o)
			}
			if len(all) > maxOperations {
				return nil, beyond("has more than %d operations; choose some with include, by tag: or path:", maxOperations)
			}
		}
	}
	nameOperations(all)
	return all, nil
}

// operation reads one operation; nil if the settings do not choose it.
func (r *reader) operation(item place, method, path string) (*operation, error) {
	if err := r.l.meter.step(); err != nil {
		return nil, err
	}
	at := item.in(method)
	from := at.object()
	o := &operation{
		id: from.Text("operationId"), method: strings.ToUpper(method), path: path, tags: from.Texts("tags"), at: at,
		summary: from.Text("summary"), description: from.Text("description"), deprecated: from.Flag("deprecated"),
	}
	if o.summary == "" {
		o.summary = item.object().Text("summary")
	}
	if !r.choice.takes(o) {
		return nil, nil
	}
	var err error
	if o.server, err = r.serverOf(item.object(), from); err != nil {
		return nil, err
	}
	if err = r.parameters(o, item); err != nil {
		return nil, err
	}
	if !r.legacy {
		o.body, err = r.requestBody(at.in("requestBody"))
	}
	return o, err
}

// pathVariable matches a variable in a path.
var pathVariable = regexp.MustCompile(`\{([^{}/]+)\}`)

// parameters reads the parameters of the path and of the operation, which replace those of the path.
func (r *reader) parameters(o *operation, item place) error {
	var found []place
	index := map[string]int{}
	for _, level := range []place{item, o.at} {
		for i, one := range level.object().List("parameters") {
			if i > maxParameters {
				return fmt.Errorf("it has more than %d parameters", maxParameters)
			}
			p, err := r.l.resolve(place{level.doc, one})
			if err != nil {
				return err
			}
			key := p.object().Text("in") + " " + p.object().Text("name")
			if at, ok := index[key]; ok {
				found[at] = p
				continue
			}
			index[key] = len(found)
			found = append(found, p)
		}
	}
	if r.legacy {
		found = r.legacyBody(o, found)
	}
	for _, p := range found {
		if one := r.parameter(p); one != nil && !r.isSet(one) {
			o.params = append(o.params, one)
		}
	}
	o.addPathVariables()
	order := []string{"path", "query", "header", "cookie"}
	slices.SortStableFunc(o.params, func(a, b *parameter) int { return slices.Index(order, a.in) - slices.Index(order, b.in) })
	return nil
}

// addPathVariables adds the variables of the path that are not declared, and removes declared ones that it does not have.
func (o *operation) addPathVariables() {
	has := map[string]bool{}
	for _, m := range pathVariable.FindAllStringSubmatch(o.path, -1) {
		has[m[1]] = true
	}
	o.params = slices.DeleteFunc(o.params, func(p *parameter) bool {
		known := has[p.wire]
		if p.in == "path" {
			delete(has, p.wire)
		}
		return p.in == "path" && !known
	})
	for _, m := range pathVariable.FindAllStringSubmatch(o.path, -1) {
		if has[m[1]] {
			delete(has, m[1])
			o.params = append(o.params, &parameter{wire: m[1], in: "path", style: "simple", required: true, schema: place{nil, newObject("type", "string")}})
		}
	}
}

// ownHeaders are headers that a parameter cannot set: the request does.
var ownHeaders = []string{"Accept", "Content-Type", "Authorization", "Host", "Content-Length", "Transfer-Encoding", "Connection", "Cookie", "Upgrade", "Te", "Trailer", "Expect", "Proxy-Authorization"}

// parameter reads one parameter, nil if it is none.
func (r *reader) parameter(at place) *parameter {
	o := at.object()
	p := &parameter{wire: o.Text("name"), in: o.Text("in"), required: o.Flag("required"), reserved: o.Flag("allowReserved"), description: o.Text("description")}
	style := map[string]string{"path": "simple", "query": "form", "header": "simple", "cookie": "form"}[p.in]
	if p.wire == "" || style == "" || p.in == "header" && (slices.Contains(ownHeaders, http.CanonicalHeaderKey(p.wire)) || !headerName.MatchString(p.wire)) {
		return nil
	}
	if p.style = o.Text("style"); p.style == "" {
		p.style = style
	}
	p.explode = p.style == "form" || p.style == "cookie"
	if o.Has("explode") {
		p.explode = o.Flag("explode")
	}
	p.required = p.required || p.in == "path"
	p.schema = at.in("schema")
	if content := at.in("content"); content.object() != nil && len(content.object().Keys()) > 0 {
		mime := content.object().Keys()[0]
		p.asJSON, p.schema = isJSON(mime), content.in(mime).in("schema")
	}
	if r.legacy {
		p.setLegacy(at)
	}
	return p
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// isSet reports whether the settings send a parameter with every request. It then is no argument.
func (r *reader) isSet(p *parameter) bool {
	switch p.in {
	case "query":
		_, ok := r.opts.Query[p.wire]
		return ok
	case "header":
		for name := range r.opts.Headers {
			if strings.EqualFold(name, p.wire) {
				return true
			}
		}
	}
	return false
}
