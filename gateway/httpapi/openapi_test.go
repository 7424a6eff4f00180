package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/internal/testutil/golden"
	"sallyport/internal/tokens"
	"sallyport/internal/tool"
)

// TestOpenAPI: the document is what the table of routes and its types say.
func TestOpenAPI(t *testing.T) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(generate(t)); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "openapi.json", text.String())
}

// An openDocument is an OpenAPI document, in the order in which people read it.
type openDocument struct {
	OpenAPI    string            `json:"openapi"`
	Info       object            `json:"info"`
	Servers    []object          `json:"servers"`
	Security   []object          `json:"security"`
	Tags       []object          `json:"tags"`
	Paths      map[string]object `json:"paths"`
	Components object            `json:"components"`
}

type operation struct {
	ID          string   `json:"operationId"`
	Models      bool     `json:"x-for-models,omitempty"`
	Scope       string   `json:"x-scope,omitempty"`
	Tags        []string `json:"tags"`
	Summary     string   `json:"summary"`
	Security    []object `json:"security,omitempty"`
	Parameters  []object `json:"parameters,omitempty"`
	RequestBody object   `json:"requestBody,omitempty"`
	Responses   object   `json:"responses"`
}

const about = "The JSON API of a Sallyport gateway: docs/how-to/use-the-api.md."

// generate makes the document from the table.
func generate(t *testing.T) openDocument {
	t.Helper()
	s := newSchemas(t)
	doc := openDocument{
		OpenAPI: "3.1.1",
		Info:    object{"title": "Sallyport", "summary": "Tools of MCP servers, called from programs in sandboxes", "description": about, "version": "dev", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		Servers: []object{{"url": ".", "description": "where this document is"}},
		// {} is for the control socket, and for who comes over loopback to a gateway without tokens.
		Security: []object{{"bearer": []string{}}, {"session": []string{}}, {}},
		Paths:    map[string]object{},
	}
	responses := object{}
	for _, r := range (&api{}).routes() {
		path := wildcard.ReplaceAllString(r.path, "{$1}")
		if doc.Paths[path] == nil {
			doc.Paths[path] = object{}
		}
		doc.Paths[path][strings.ToLower(r.method)] = s.operation(r, responses)
	}
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		doc.Tags = append(doc.Tags, object{"name": tag, "description": tags[tag]})
	}
	s.of(reflect.TypeFor[Problem](), false)
	doc.Components = object{"schemas": s.parts, "responses": responses, "securitySchemes": security()}
	return doc
}

func security() object {
	var scopes []string
	for _, one := range tool.Scopes() {
		scopes = append(scopes, string(one))
	}
	return object{
		"bearer":  object{"type": "http", "scheme": "bearer", "description": "A token of the settings, of an authorization server, or of `sallyport token create NAME --scope SCOPE`. Scopes: " + strings.Join(scopes, ", ") + "."},
		"session": object{"type": "apiKey", "in": "cookie", "name": "sallyport_8080", "description": "The session of a browser, of /login; the number is the port of the address."},
	}
}

// Tags are the first parts of paths.
var tags = map[string]string{
	"health":     "How the gateway is",
	"approvals":  "Calls that wait for a person",
	"executions": "Programs that run, and that have run",
	"workflows":  "Workflows",
	"runs":       "Runs of workflows",
	"tasks":      "Tasks in words, by a model or by rules",
	"tools":      "Tools of the upstreams",
	"upstreams":  "The upstreams, and what of theirs waits for an operator",
	"plugins":    "Plugins of the operator",
	"cluster":    "The gateways that share a store, and their workers",
	"workspaces": "Files of workspaces",
	"skills":     "Skills, code that programs import",
	"numbers":    "What it costs and saves, and what is on record",
	"openapi":    "This document",
}

// tagOf is what a path is about.
func (s *schemas) tagOf(path string) string {
	first, _, _ := strings.Cut(path[1:], "/")
	if tag, ok := map[string]string{"readyz": "health", "openapi.json": "openapi", "execute": "executions", "savings": "numbers", "timeline": "numbers", "budgets": "numbers", "audit": "numbers", "metrics": "numbers"}[first]; ok {
		first = tag
	}
	if tags[first] == "" {
		s.tb.Errorf("say in tags what %s is about", path)
	}
	return first
}

var (
	wildcard = regexp.MustCompile(`\{(\w+)(?:\.\.\.)?\}`)
	// inPath says what the parts of paths are.
	inPath = map[string]string{
		"id":       "its id",
		"name":     "its name",
		"upstream": "the id of an upstream",
		"path":     "the path of a file",
		"tool":     "the name of a tool, as programs import it",
	}
)

func (s *schemas) operation(r route, responses object) operation {
	op := operation{ID: r.name, Models: r.models, Scope: string(r.scope), Tags: []string{s.tagOf(r.path)}, Summary: strings.ToUpper(r.summary[:1]) + r.summary[1:], Responses: object{}}
	if r.name == "" {
		s.tb.Errorf("%s %s has no name", r.method, r.path)
	}
	if r.scope == "" {
		op.Security = []object{{}, {"bearer": []string{}}}
	}
	for _, found := range wildcard.FindAllStringSubmatch(r.path, -1) {
		if inPath[found[1]] == "" {
			s.tb.Errorf("say in inPath what %s is", found[0])
		}
		op.Parameters = append(op.Parameters, object{"name": found[1], "in": "path", "required": true, "description": inPath[found[1]], "schema": object{"type": "string"}})
	}
	for _, p := range r.params {
		op.Parameters = append(op.Parameters, object{"name": p.name, "in": "query", "description": p.summary, "schema": p.schema})
	}
	if r.in != nil {
		op.RequestBody = object{"required": true, "content": object{"application/json": object{"schema": s.of(r.in, true)}}}
	}
	if r.method == http.MethodPut {
		op.RequestBody = object{"required": true, "content": object{"application/octet-stream": object{"schema": object{"type": "string", "format": "binary"}}}}
	}
	op.Responses["200"] = s.success(r)
	if r.out != nil && r.out.Implements(reflect.TypeFor[interface{ pending() bool }]()) {
		op.Responses["202"] = s.success(r)
		op.Responses["202"].(object)["description"] = "Accepted: a person has to answer first"
	}
	if r.hasETag {
		op.Responses["304"] = object{"description": "It has not changed"}
	}
	for _, status := range r.statuses() {
		name := strings.ReplaceAll(http.StatusText(status), " ", "")
		op.Responses[strconv.Itoa(status)] = object{"$ref": "#/components/responses/" + name}
		responses[name] = refusal(status)
	}
	return op
}

// mediaTypes are what the types of answers that are not made of Go types are in JSON Schema.
var mediaTypes = map[string]string{"application/json": "object", "application/octet-stream": "string", "text/event-stream": "string", "text/plain": "string"}

// success is the answer with status 200.
func (s *schemas) success(r route) object {
	content := object{}
	if r.out != nil {
		content["application/json"] = object{"schema": s.of(r.out, false)}
	}
	if len(r.events) > 0 {
		events := object{}
		for name, t := range r.events {
			events[name] = s.of(t, false)
		}
		content["text/event-stream"] = object{"schema": object{"type": "string", "description": "Events: " + strings.Join(slices.Sorted(maps.Keys(r.events)), ", ")}, "x-events": events}
	}
	for _, kind := range r.media {
		content[kind] = object{"schema": object{"type": mediaTypes[kind]}}
	}
	return object{"description": "OK", "content": content}
}

// statuses are those of the problems that a route can answer with.
func (rt route) statuses() []int {
	all := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusInternalServerError}
	if rt.scope != "" {
		all = append(all, http.StatusForbidden)
	}
	if rt.engine || strings.Contains(rt.path, "{") {
		all = append(all, http.StatusNotFound)
	}
	if rt.in != nil {
		all = append(all, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	all = append(all, rt.fails...)
	slices.Sort(all)
	return slices.Compact(all)
}

var descriptions = map[int]string{
	http.StatusBadRequest:            "The request is wrong; another must differ",
	http.StatusUnauthorized:          "A token is needed, or this one is not known",
	http.StatusForbidden:             "The token lacks the scope, or the policy denies it",
	http.StatusNotFound:              "It does not exist, or the requester may not see it",
	http.StatusPreconditionFailed:    "The file has changed",
	http.StatusInsufficientStorage:   "The workspace has no room for the file",
	http.StatusConflict:              "It is not possible in the current state",
	http.StatusRequestEntityTooLarge: "The body is too large",
	http.StatusUnsupportedMediaType:  "The body is of another type",
	http.StatusTooManyRequests:       "A limit is reached",
	http.StatusInternalServerError:   "The gateway has failed",
	http.StatusBadGateway:            "The upstream cannot be reached, or its answer is invalid",
	http.StatusServiceUnavailable:    "The gateway is busy or not ready; retry later",
	http.StatusGatewayTimeout:        "It exceeded its time limit",
}

// refusal is a problem with a status.
func refusal(status int) object {
	one := object{"description": descriptions[status], "content": object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}}
	switch status {
	case http.StatusUnauthorized:
		one["headers"] = object{"WWW-Authenticate": object{"schema": object{"type": "string"}}}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		one["headers"] = object{"Retry-After": object{"description": "seconds", "schema": object{"type": "integer"}}}
	}
	return one
}

// TestOpenAPIIsValid: each profile is right by the schema of OpenAPI 3.1, its references lead somewhere, and names are there once.
func TestOpenAPIIsValid(t *testing.T) {
	c := jsonschema.NewCompiler()
	schema, err := c.Compile("testdata/openapi-3.1-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{profileAll, profileTools, profileClients} {
		data, err := document(profile, "1.2.3", nil)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("profile %s: %v", profile, err)
		}
		for _, found := range reference.FindAllStringSubmatch(string(data), -1) {
			part := value.(object)["components"].(object)[found[1]].(object)[found[2]]
			if part == nil {
				t.Errorf("profile %s: %s is nowhere", profile, found[0])
			}
		}
		named := map[string]bool{}
		for _, item := range value.(object)["paths"].(object) {
			for _, op := range item.(object) {
				if id, ok := op.(object)["operationId"].(string); ok {
					if named[id] {
						t.Errorf("two operations are %s", id)
					}
					named[id] = true
				}
			}
		}
		countTokens(t, profile, data)
	}
}

// maxShown is how many tokens the tools may cost a model, without what it is told as over MCP.
const maxShown = 600

// countTokens says what a profile costs.
func countTokens(t *testing.T, profile string, data []byte) {
	t.Helper()
	counter, err := tokens.O200k()
	if err != nil {
		t.Fatal(err)
	}
	all, err := counter.Count(string(data))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(openWebUI(t, data))
	if err != nil {
		t.Fatal(err)
	}
	model, err := counter.Count(string(shown))
	if err != nil {
		t.Fatal(err)
	}
	if profile != profileClients && model > maxShown {
		t.Errorf("a model sees %d tokens, and pays for them in every message; at most %d are meant", model, maxShown)
	}
	t.Logf("profile %s: %d bytes, %d tokens; a model behind Open WebUI sees %d tokens", profile, len(data), all, model)
}

// openWebUI makes of a document what Open WebUI gives a model: a function of each operation that has a name, with the
// parameters and the members of the body as its parameters.
func openWebUI(t *testing.T, data []byte) (functions []object) {
	t.Helper()
	var doc object
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	resolve := func(schema object) object {
		if to, ok := schema["$ref"].(string); ok {
			return doc["components"].(object)["schemas"].(object)[to[strings.LastIndex(to, "/")+1:]].(object)
		}
		return schema
	}
	for _, path := range slices.Sorted(maps.Keys(doc["paths"].(object))) {
		for _, one := range doc["paths"].(object)[path].(object) {
			op := one.(object)
			if op["operationId"] == nil {
				continue
			}
			properties, required := object{}, []any{}
			parameters, _ := op["parameters"].([]any)
			for _, p := range parameters {
				parameter := p.(object)
				schema := parameter["schema"].(object)
				says := parameter["description"].(string)
				if words, ok := schema["enum"].([]any); ok {
					says += ". Possible values: " + fmt.Sprint(words)
				}
				properties[parameter["name"].(string)] = object{"type": schema["type"], "description": says}
				if parameter["required"] == true {
					required = append(required, parameter["name"])
				}
			}
			body, _ := op["requestBody"].(object)
			content, _ := body["content"].(object)
			if data, ok := content["application/json"].(object); ok {
				of := resolve(data["schema"].(object))
				members, _ := of["properties"].(object)
				maps.Copy(properties, members)
				more, _ := of["required"].([]any)
				required = append(required, more...)
			}
			about := op["description"]
			if about == nil {
				about = op["summary"]
			}
			functions = append(functions, object{"type": "function", "function": object{"name": op["operationId"], "description": about,
				"parameters": object{"type": "object", "properties": properties, "required": required}}})
		}
	}
	return functions
}

// TestPropertyNames: names are in snake_case and durations in milliseconds, but for older names, which are marked, and for types of MCP
// and of another server, which have their names.
func TestPropertyNames(t *testing.T) {
	t.Parallel()
	s := newSchemas(t)
	for _, r := range (&api{}).routes() {
		s.operation(r, object{})
	}
	foreign := []string{"Annotations", "Content", "Resource", "ToolInfo", "ToolResult", "Executed", "Metrics"}
	good, unit := regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*$`), regexp.MustCompile(`duration|second|_us$|_ns$|_s$`)
	checked := 0
	for part, schema := range s.parts {
		properties, _ := schema["properties"].(object)
		for name, property := range properties {
			checked++
			old := property.(object)["deprecated"] == true
			if !slices.Contains(foreign, part) && !old && (!good.MatchString(name) || unit.MatchString(name) && !strings.HasSuffix(name, "_ms")) {
				t.Errorf("%s.%s: write snake_case, and durations as NAME_ms", part, name)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d properties", checked)
	}
}
