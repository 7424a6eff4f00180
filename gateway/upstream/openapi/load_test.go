package openapi_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/gateway/upstream/openapi"
	"sallyport/gateway/upstream/webapi"
)

// Each operation of a real API is a tool with schemas that a checker accepts.
func TestRealAPIs(t *testing.T) {
	valid := regexp.MustCompile(`^[A-Za-z0-9_./-]{1,128}$`)
	for name, want := range realAPIs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := load(t, openapi.Options{Document: unpack(t, name), Server: "https://api.example"})
			all := definitions(t, api)
			if len(all) != want || len(api.Skipped) > 1 {
				t.Errorf("%d tools, want %d; skipped %q", len(all), want, api.Skipped)
			}
			i, typed := 0, 0
			for _, d := range all {
				if !valid.MatchString(d.Name) || d.Description == "" {
					t.Errorf("name %q, description %q", d.Name, d.Description)
				}
				if len(d.Input) > 200<<10 || len(d.Output) > 200<<10 {
					t.Errorf("%s has schemas of %d and %d bytes", d.Name, len(d.Input), len(d.Output))
				}
				if len(d.Output) > 0 {
					typed++
				}
				if i++; i%40 == 0 { // some are enough, as many are slow
					compile(t, d.Name, d.Input)
					if len(d.Output) > 0 {
						compile(t, d.Name, d.Output)
					}
				}
			}
			if typed < len(all)/2 {
				t.Errorf("only %d of %d tools have typed results", typed, len(all))
			}
		})
	}
}

func compile(t *testing.T, name string, schema []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("x.json", v); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile("x.json"); err != nil {
		t.Errorf("%s: %v\n%.2000s", name, err, schema)
	}
}

const head = "openapi: 3.0.0\ninfo: {title: t, version: '1'}\nservers: [{url: 'https://a.example/v1/'}]\n"

func TestFiles(t *testing.T) {
	doc := file(t, "api.yaml", head+`paths: {"/pets/{id}": {$ref: "paths/pet.json#/item"}}`,
		"paths/pet.json", `{"item":{"get":{"operationId":"pet","parameters":[{"$ref":"../common.yaml#/id"}],"responses":{"200":{"$ref":"#/ok"}}}},
			"ok":{"description":"","content":{"application/json":{"schema":{"$ref":"../common.yaml#/Pet"}}}}}`,
		"common.yaml", "id: {name: id, in: path, required: true, schema: {type: integer}}\nPet: {type: object, properties: {name: {type: string}, friend: {$ref: '#/Pet'}}}\n")
	d := definitions(t, load(t, openapi.Options{Document: doc}))["pet"]
	if want := `{"type":"object","properties":{"name":{"type":"string"},"friend":{"$ref":"#/$defs/Pet"}},"$defs":{"Pet":{"type":"object","properties":{"name":{"type":"string"},"friend":{"$ref":"#/$defs/Pet"}}}}}`; string(d.Output) != want {
		t.Errorf("output %s", d.Output)
	}
	if want := `{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"],"additionalProperties":false,"x-server":"https://a.example/v1"}`; string(d.Input) != want {
		t.Errorf("input %s", d.Input)
	}
}

// A hostile document ends in an error that says what is wrong, soon and without much memory.
func TestHostileDocuments(t *testing.T) {
	bomb := "a0: &a0 [1]\n"
	for i := range 40 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i)
	}
	many := head + "x: {get: {operationId: a, parameters: [" + strings.Repeat("{name: q, in: query},", 150) + "]}}\npaths:\n"
	for i := range 6000 {
		many += fmt.Sprintf("  /p%d: {$ref: '#/x'}\n", i)
	}
	work := head + "components: {schemas: {A: {type: object, properties: {" + manyProperties(20000) + "}}}}\npaths:\n"
	for i := range 3000 {
		work += fmt.Sprintf("  /p%d: {get: {parameters: [{name: q, in: query, schema: {type: object, properties: {a: {$ref: '#/components/schemas/A'}}}}], responses: {'200': {content: {application/json: {schema: {$ref: '#/x'}}}}}}}\n", i)
	}
	work += "x: {type: object, properties: {" + manyProperties(20000) + "}}\n"
	secret := filepath.Join(t.TempDir(), "secret.yaml")
	if err := os.WriteFile(secret, []byte("get: {operationId: stolen}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ doc, want string }{
		"not a document": {"hello: 1", "neither openapi: 3.x nor swagger: 2.0"},
		"text":           {"hello", "not an object"},
		"empty":          {"", "empty"},
		"cut off":        {`{"openapi": "3.0`, "unexpected end of stream"},
		"no operation":   {head + "paths: {}", "no operation"},
		"aliases":        {head + bomb, "values"},
		"alias cycle":    {head + "x: &x [*x]", "refers to itself"},
		"depth":          {head + "x: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested more than"},
		"json depth":     {`{"openapi":"3.0.0","x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}", "nested more than"},
		"reference loop": {head + "paths: {/a: {$ref: '#/x'}}\nx: {$ref: '#/y'}\ny: {$ref: '#/x'}", "refers to itself"},
		"missing":        {head + "paths: {/a: {$ref: '#/nothing'}}", "points to nothing"},
		"other folder":   {head + "paths: {/a: {$ref: '../secret.yaml'}}", "leaves the folder"},
		"absolute":       {head + "paths: {/a: {$ref: '" + secret + "'}}", "leaves the folder"},
		"file URL":       {head + "paths: {/a: {$ref: 'file://" + secret + "'}}", "leaves the folder"},
		"network":        {head + "paths: {/a: {$ref: 'http://127.0.0.1:1/x'}}", "leaves the folder"},
		"operations":     {many, "more than 5000 operations"},
		"large":          {head + "x: \"" + strings.Repeat("x", 33<<20) + "\"", "32 MiB"},
		"repetition":     {work, "by references more than"},
		"no server":      {"openapi: 3.0.0\npaths: {/a: {get: {}}}", "names no server"},
		"server scheme":  {"openapi: 3.0.0\nservers: [{url: 'file://h/etc'}]\npaths: {/a: {get: {}}}", "neither https:// nor http://"},
		"variable":       {"openapi: 3.0.0\nservers: [{url: 'https://{x}/'}]\npaths: {/a: {get: {}}}", "variable x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openapi.Load(t.Context(), openapi.Options{Document: file(t, "a.yaml", c.doc)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %.300v, want %q", err, c.want)
			}
		})
	}
}

func manyProperties(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "p%d: {type: string},", i)
	}
	return b.String()
}

// A link in the folder does not lead out of it.
func TestLinks(t *testing.T) {
	doc := file(t, "a.yaml", head+"paths: {/a: {$ref: 'b.yaml'}}")
	outside := file(t, "b.yaml", "get: {operationId: stolen}")
	if err := os.Symlink(outside, filepath.Join(filepath.Dir(doc), "b.yaml")); err != nil {
		t.Skip(err)
	}
	if _, err := openapi.Load(t.Context(), openapi.Options{Document: doc}); err == nil {
		t.Error("the link was followed")
	}
}

// A document from the network sends no request to another host, unless the settings name it.
func TestRemoteDocument(t *testing.T) {
	other := newServer(t, nil, "X-Key")
	var doc string
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/docs/moved":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/docs/api.yaml":
			_, _ = io.WriteString(w, doc)
		case "/docs/more.yaml":
			_, _ = io.WriteString(w, "get: {operationId: more}")
		}
	}, "X-Key")
	opts := openapi.Options{Document: s.URL + "/docs/api.yaml?token=s3cret-s3cret", Transport: s.Client().Transport, Documents: s.Client().Transport, Credentials: webapi.Credentials{Headers: map[string]string{"X-Key": "k-1234567890"}}}
	const plain = "openapi: 3.0.0\npaths: {/a: {get: {operationId: a}}, /b: {$ref: more.yaml}}\n"

	doc = plain + "servers: [{url: ../v1}]\n"
	api := load(t, opts)
	call(t, api, "more", `{}`)
	if got := s.last(); got != "GET /v1/b\nX-Key: k-1234567890" {
		t.Errorf("sent %s", got)
	}
	if s.requests[0] != "GET /docs/api.yaml?token=s3cret-s3cret" { // without the key: no url says whose it is
		t.Errorf("the document was requested by %s", s.requests[0])
	}
	for want, bad := range map[string]string{
		"another host":     plain + "servers: [{url: '" + other.URL + "'}]\n",
		"leaves the host":  "openapi: 3.0.0\npaths: {/a: {$ref: '" + other.URL + "/x.yaml'}}\n",
		"HTTP 404":         "openapi: 3.0.0\npaths: {/a: {$ref: '/nothing'}}\n",
		"redirects to htt": "openapi: 3.0.0\npaths: {/a: {$ref: 'moved'}}\n",
	} {
		doc = bad
		if want == "HTTP 404" {
			s.answer, doc = func(answer http.HandlerFunc) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/nothing" {
						http.NotFound(w, r)
						return
					}
					answer(w, r)
				}
			}(s.answer), bad
		}
		if _, err := openapi.Load(t.Context(), opts); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if other.last() != "" {
		t.Errorf("the other host got %s", other.last())
	}
	doc = plain
	opts.Server = other.URL
	call(t, load(t, opts), "a", `{}`)
	if got := other.last(); got != "GET /a\nX-Key: k-1234567890" {
		t.Errorf("with url the other host got %q", got)
	}
}

func TestNames(t *testing.T) {
	const ops = `
  /pets: {get: {operationId: list pets, tags: [pets]}, post: {tags: [pets]}}
  /pets/{id}: {get: {operationId: twice}, delete: {}}
  /pets/id: {get: {operationId: twice}, delete: {}}
  /x: {get: {operationId: "☃"}}
  /admin/users: {get: {operationId: LIST_pets, tags: [admin]}}
`
	names := load(t, openapi.Options{Document: file(t, "a.yaml", head+"paths:"+ops)}).Names()
	got := strings.Join(names, " ")
	if want := regexp.MustCompile(`^LIST_pets_\w{8} delete_pets_id_\w{8} delete_pets_id_\w{8} get_pets_id_\w{8} get_pets_id_\w{8} get_x list_pets_\w{8} post_pets$`); !want.MatchString(got) {
		t.Errorf("names %s", got)
	}
	fewer := load(t, openapi.Options{Document: file(t, "a.yaml", head+"paths:"+ops), Include: []string{"tag:pets", "path:/pets/**", "get_x"}, Exclude: []string{"twice", "delete_*"}})
	if got := strings.Join(fewer.Names(), " "); got != "get_x list_pets post_pets" {
		t.Errorf("chosen %s", got)
	}
}

func TestSchemas(t *testing.T) {
	for name, c := range map[string]struct{ version, schema, want string }{
		"nullable":   {"3.0.0", `{type: string, nullable: true, enum: [a]}`, `{"type":["string","null"],"enum":["a",null]}`},
		"reference":  {"3.0.0", `{nullable: true, allOf: [{type: object}]}`, `{"anyOf":[{"allOf":[{"type":"object"}]},{"type":"null"}]}`},
		"bounds":     {"3.0.0", `{type: integer, minimum: 1, exclusiveMinimum: true}`, `{"type":"integer","exclusiveMinimum":1}`},
		"null type":  {"3.1.0", `{type: [integer, "null"], const: 3}`, `{"type":["integer","null"],"const":3}`},
		"patterns":   {"3.0.0", `{type: string, pattern: "^(?!x)[", minLength: two}`, `{"type":"string"}`},
		"invalid":    {"3.0.0", `{type: any, required: true, enum: {}, items: 5, x-a: 1, example: 1}`, `{"items":{}}`},
		"one of":     {"3.0.0", `{oneOf: [{type: string}, {type: integer}], discriminator: {propertyName: a}}`, `{"anyOf":[{"type":"string"},{"type":"integer"}]}`},
		"read only":  {"3.0.0", `{type: object, required: [a, b], properties: {a: {readOnly: true}, b: {writeOnly: true}}}`, `{"type":"object","required":["b"],"properties":{"b":{}}}`},
		"bytes":      {"3.0.0", `{type: string, format: byte}`, `{"type":"string","contentEncoding":"base64","format":"byte"}`},
		"no cycle":   {"3.0.0", `{$ref: "#/components/schemas/Loop"}`, `{}`},
		"broken":     {"3.0.0", `{type: array, items: {$ref: "#/nothing"}}`, `{"type":"array","items":{}}`},
		"duplicates": {"3.0.0", `{enum: [a, a, 1, 1]}`, `{"enum":["a",1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			doc := "openapi: " + c.version + "\nservers: [{url: 'https://a.example'}]\ncomponents: {schemas: {Loop: {$ref: '#/components/schemas/Loop'}}}\npaths: {/a: {get: {operationId: a, parameters: [{name: q, in: query, schema: " + c.schema + "}]}}}\n"
			d := definitions(t, load(t, openapi.Options{Document: file(t, "a.yaml", doc)}))["a"]
			want := `{"type":"object","properties":{"q":` + c.want + `},"additionalProperties":false,"x-server":"https://a.example"}`
			if string(d.Input) != want {
				t.Errorf("got  %s\nwant %s", d.Input, want)
			}
		})
	}
}

func TestAnnotations(t *testing.T) {
	doc := head + "paths: {/a: {get: {operationId: get, deprecated: true, summary: Get it., description: Get it. <b>All</b> of it.}, put: {operationId: put}, post: {operationId: post}, delete: {operationId: delete}}, /b: {get: {operationId: paged, parameters: [{name: per_page, in: query}, {name: page, in: query}]}}}"
	all := definitions(t, load(t, openapi.Options{Document: file(t, "a.yaml", doc)}))
	for name, want := range map[string]string{
		"get": "map[destructiveHint:false idempotentHint:true readOnlyHint:true]", "put": "map[idempotentHint:true readOnlyHint:false]",
		"post": "map[readOnlyHint:false]", "delete": "map[destructiveHint:true idempotentHint:true readOnlyHint:false]",
	} {
		if got := fmt.Sprint(all[name].Annotations); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got, want := all["get"].Description, "Deprecated.\nGet it. All of it.\nGET /a"; got != want {
		t.Errorf("description %q", got)
	}
	if got, want := all["paged"].Description, "Returns one page; the next one by page, its size by per_page.\nGET /b"; got != want {
		t.Errorf("description %q", got)
	}
}

const legacy = `
swagger: "2.0"
info: {title: old, version: "1"}
host: old.example
basePath: /v2
schemes: [http, https]
consumes: [application/json]
paths:
  /pets:
    get:
      operationId: list
      parameters: [{name: tags, in: query, type: array, items: {type: string}, collectionFormat: pipes}, {name: ids, in: query, type: array, items: {type: integer}, collectionFormat: multi}]
      responses: {"200": {schema: {type: array, items: {$ref: "#/definitions/Pet"}}}}
    post: {operationId: add, parameters: [{name: body, in: body, required: true, schema: {$ref: "#/definitions/Pet"}}]}
  /upload: {post: {operationId: upload, consumes: [multipart/form-data], parameters: [{name: f, in: formData, type: file, required: true}, {name: n, in: formData, type: string}]}}
  /login: {post: {operationId: login, consumes: [application/x-www-form-urlencoded], parameters: [{name: user, in: formData, type: string, required: true}]}}
definitions: {Pet: {type: object, required: [name], properties: {name: {type: string}}}}
`

func TestLegacy(t *testing.T) {
	s := newServer(t, nil, "Content-Type")
	api := load(t, s.options(file(t, "old.yaml", legacy)))
	for _, c := range []struct{ name, args, want string }{
		{"list", `{"tags":["a","b"],"ids":[1,2]}`, "GET /pets?tags=a%7Cb&ids=1&ids=2"},
		{"add", `{"name":"rex"}`, "POST /pets\nContent-Type: application/json\n{\"name\":\"rex\"}"},
		{"login", `{"user":"a b"}`, "POST /login\nContent-Type: application/x-www-form-urlencoded\nuser=a%20b"},
	} {
		call(t, api, c.name, c.args)
		if got := s.last(); got != c.want {
			t.Errorf("%s sent %q, want %q", c.name, got, c.want)
		}
	}
	call(t, api, "upload", `{"f":"AAEC"}`)
	if got := s.last(); !strings.Contains(got, "multipart/form-data; boundary=") || !strings.Contains(got, "\x00\x01\x02") {
		t.Errorf("upload sent %q", got)
	}
	own := definitions(t, load(t, openapi.Options{Document: file(t, "old.yaml", legacy)}))
	if !strings.Contains(string(own["list"].Input), `"x-server":"https://old.example/v2"`) || !strings.Contains(string(own["list"].Output), `"x-fastmcp-wrap-result":true`) {
		t.Errorf("list: %s %s", own["list"].Input, own["list"].Output)
	}
}

// FuzzLoad checks that no document breaks the reader, and that each definition is JSON with a name of its own.
func FuzzLoad(f *testing.F) {
	for _, doc := range []string{styles, bodies, answers, legacy, head + "paths: {/a: {$ref: '#/x'}}\nx: &x {get: {parameters: [*x]}}"} {
		f.Add([]byte(doc), "{}")
	}
	f.Fuzz(func(t *testing.T, data []byte, args string) {
		path := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		api, err := openapi.Load(t.Context(), openapi.Options{Document: path, Server: "https://127.0.0.1:1", Transport: refusing{}})
		if err != nil {
			return
		}
		for name := range definitions(t, api) {
			_, _ = api.Call(t.Context(), name, []byte(args))
		}
	})
}

// refusing is a transport that sends nothing, and checks where it would.
type refusing struct{}

func (refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != "127.0.0.1:1" || strings.Contains(r.URL.EscapedPath(), "/../") {
		panic("request to " + r.URL.String())
	}
	return nil, io.ErrUnexpectedEOF
}
