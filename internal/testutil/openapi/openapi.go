// Package openapi checks responses of an HTTP API against its OpenAPI document, which [Read] parses as a [Document].
package openapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is an OpenAPI document with its test coverage. It is for one goroutine.
type Document struct {
	doc        map[string]any
	operations map[string]map[string]any
	compiler   *jsonschema.Compiler
	schemas    map[string]*jsonschema.Schema
	seen       map[string]bool
}

// Read parses a document. Its schemas are made strict: unknown members fail a test, although clients must ignore
// them.
func Read(tb testing.TB, data []byte) *Document {
	tb.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		tb.Fatalf("%v in %.200s", err, data)
	}
	doc := value.(map[string]any)
	d := &Document{doc: doc, operations: map[string]map[string]any{}, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}, seen: map[string]bool{}}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			d.operations[strings.ToUpper(method)+" "+path] = op.(map[string]any)
		}
	}
	for _, schema := range d.at("components", "schemas") {
		schema.(map[string]any)["unevaluatedProperties"] = false
	}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("mem:///openapi.json", doc); err != nil {
		tb.Fatal(err)
	}
	return d
}

// Operations returns the operations by "METHOD /path", with the path as in the document.
func (d *Document) Operations() map[string]map[string]any { return d.operations }

// Unseen returns the statuses of operations ("METHOD /path status") that no response has had yet, sorted.
func (d *Document) Unseen() (all []string) {
	for name, op := range d.operations {
		for status := range op["responses"].(map[string]any) {
			if !d.seen[name+" "+status] {
				all = append(all, name+" "+status)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Answer is a response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Check fails the test if the status, a header or the body of a response does not match the document. name identifies
// the response in messages.
func (d *Document) Check(tb testing.TB, name, operation string, got Answer) {
	tb.Helper()
	op := d.operations[operation]
	if op == nil {
		tb.Errorf("%s: %s is not in the document", name, operation)
		return
	}
	status := strconv.Itoa(got.Status)
	d.seen[operation+" "+status] = true
	response, ok := op["responses"].(map[string]any)[status].(map[string]any)
	if !ok {
		tb.Errorf("%s: the document does not have status %s: %.300s", name, status, got.Body)
		return
	}
	place := d.place(operation, "responses", status)
	if to, ok := response["$ref"].(string); ok {
		place = to[1:]
		response = d.at(strings.Split(to[2:], "/")...)
	}
	kind, _, _ := strings.Cut(got.Header.Get("Content-Type"), ";")
	content, _ := response["content"].(map[string]any)
	switch {
	case len(content) == 0 && len(got.Body) == 0:
	case content[kind] == nil:
		tb.Errorf("%s: the answer is %q, the document has %v", name, kind, slices.Collect(maps.Keys(content)))
	case strings.HasSuffix(kind, "json"):
		d.Fits(tb, name, place+pointer("content", kind, "schema"), got.Body)
	case kind == "text/event-stream":
		d.events(tb, name, place+pointer("content", kind, "x-events"), got.Body)
	}
	d.headers(tb, name, response, got)
}

// headers checks the headers of all responses, and those in the document.
func (d *Document) headers(tb testing.TB, name string, response map[string]any, got Answer) {
	tb.Helper()
	if got.Header.Get("X-Content-Type-Options") != "nosniff" && len(got.Body) > 0 || got.Header.Get("Cache-Control") == "" {
		tb.Errorf("%s: the headers are %v", name, got.Header)
	}
	headers, _ := response["headers"].(map[string]any)
	for header, about := range headers {
		value := got.Header.Get(header)
		if value == "" && about.(map[string]any)["required"] == true {
			tb.Errorf("%s: there is no %s in %v", name, header, got.Header)
		}
		if _, err := strconv.Atoi(value); header == "Retry-After" && value != "" && err != nil {
			tb.Errorf("%s: %s is %q", name, header, value)
		}
	}
}

// CheckRequest fails the test if a request body does not match the document.
func (d *Document) CheckRequest(tb testing.TB, name, operation string, body []byte) {
	tb.Helper()
	if d.operations[operation]["requestBody"] != nil {
		d.Fits(tb, name+": the request", d.place(operation, "requestBody", "content", "application/json", "schema"), body)
	}
}

// Fits fails the test if JSON does not match the schema at a JSON pointer in the document.
func (d *Document) Fits(tb testing.TB, name, place string, data []byte) {
	tb.Helper()
	schema := d.schemas[place]
	if schema == nil {
		var err error
		if schema, err = d.compiler.Compile("mem:///openapi.json#" + place); err != nil {
			tb.Fatalf("%s: %v", place, err)
		}
		d.schemas[place] = schema
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		tb.Errorf("%s: %v in %.300s", name, err, data)
		return
	}
	if err := schema.Validate(value); err != nil {
		tb.Errorf("%s: %v\nin %.1000s", name, err, data)
	}
}

// events checks an event stream: each event has a documented name, and data that matches its schema.
func (d *Document) events(tb testing.TB, name, place string, body []byte) {
	tb.Helper()
	kind, lines := "", bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			kind = value
		case "data":
			if !json.Valid([]byte(value)) || kind == "" {
				tb.Errorf("%s: the event %q has the data %.200s", name, kind, value)
				continue
			}
			d.Fits(tb, name+": event "+kind, place+pointer(kind), []byte(value))
		}
	}
}

// place returns the JSON pointer of a part of an operation.
func (d *Document) place(operation string, names ...string) string {
	method, path, _ := strings.Cut(operation, " ")
	return pointer(append([]string{"paths", path, strings.ToLower(method)}, names...)...)
}

func (d *Document) at(names ...string) map[string]any {
	at := d.doc
	for _, name := range names {
		at, _ = at[name].(map[string]any)
	}
	return at
}

var escaped = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")

// pointer returns a JSON pointer, as encoded in the fragment of a URL.
func pointer(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("/" + escaped.Replace(name))
	}
	return b.String()
}
