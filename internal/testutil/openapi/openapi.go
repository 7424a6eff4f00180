// Package openapi checks answers of an HTTP API by the API's OpenAPI document. [Read] makes a [Document] of it.
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

// Document is an OpenAPI document, and what has been seen of what it says. It is for one goroutine.
type Document struct {
	doc        map[string]any
	operations map[string]map[string]any
	compiler   *jsonschema.Compiler
	schemas    map[string]*jsonschema.Schema
	seen       map[string]bool
}

// Read reads a document. What its schemas do not say must not come: a reader of answers takes what is new, a test does not.
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

// Operations are by "METHOD /path", with the path as the document has it.
func (d *Document) Operations() map[string]map[string]any { return d.operations }

// Unseen are the statuses of operations ("METHOD /path status") that no answer has had yet, sorted.
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

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Check fails the test if an answer of an operation is not what the document says: its status, its headers, and its body. The name
// says in messages which one it is.
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

// headers are of every answer, and those that the document has are there, as it says.
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

// CheckRequest fails the test if a body of a request is not what the document says of the operation.
func (d *Document) CheckRequest(tb testing.TB, name, operation string, body []byte) {
	tb.Helper()
	if d.operations[operation]["requestBody"] != nil {
		d.Fits(tb, name+": the request", d.place(operation, "requestBody", "content", "application/json", "schema"), body)
	}
}

// Fits fails the test if JSON does not fit the schema at a place of the document, a JSON pointer.
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

// events checks a stream of events: each has a name that the document has, and data that fits.
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

// place is where something of an operation is.
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

// pointer is a JSON pointer, as it is in the fragment of a URL.
func pointer(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("/" + escaped.Replace(name))
	}
	return b.String()
}
