package openapi_test

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"sallyport/gateway/upstream/webapi"
)

// styles has one operation for each place, style and explode of a parameter.
const styles = `
openapi: 3.0.3
info: {title: styles, version: "1"}
paths:
  /simple/{v}: {get: {operationId: simple, parameters: [{name: v, in: path, required: true, schema: {}}]}}
  /simple-explode/{v}: {get: {operationId: simple_explode, parameters: [{name: v, in: path, required: true, explode: true, schema: {}}]}}
  /label/{v}: {get: {operationId: label, parameters: [{name: v, in: path, required: true, style: label, schema: {}}]}}
  /label-explode/{v}: {get: {operationId: label_explode, parameters: [{name: v, in: path, required: true, style: label, explode: true, schema: {}}]}}
  /matrix/{v}: {get: {operationId: matrix, parameters: [{name: v, in: path, required: true, style: matrix, schema: {}}]}}
  /matrix-explode/{v}: {get: {operationId: matrix_explode, parameters: [{name: v, in: path, required: true, style: matrix, explode: true, schema: {}}]}}
  /undeclared/{v}.json: {get: {operationId: undeclared}}
  /form: {get: {operationId: form, parameters: [{name: v, in: query, schema: {}}]}}
  /form-joined: {get: {operationId: form_joined, parameters: [{name: v, in: query, explode: false, schema: {}}]}}
  /space: {get: {operationId: space, parameters: [{name: v, in: query, style: spaceDelimited, explode: false, schema: {}}]}}
  /pipe: {get: {operationId: pipe, parameters: [{name: v, in: query, style: pipeDelimited, explode: false, schema: {}}]}}
  /deep: {get: {operationId: deep, parameters: [{name: v, in: query, style: deepObject, explode: true, schema: {}}]}}
  /reserved: {get: {operationId: reserved, parameters: [{name: v, in: query, allowReserved: true, schema: {}}]}}
  /json: {get: {operationId: json, parameters: [{name: v, in: query, content: {application/json: {schema: {}}}}]}}
  /header: {get: {operationId: header, parameters: [{name: X-V, in: header, schema: {}}]}}
  /header-explode: {get: {operationId: header_explode, parameters: [{name: X-V, in: header, explode: true, schema: {}}]}}
  /cookie: {get: {operationId: cookie, parameters: [{name: v, in: cookie, schema: {}}]}}
  /same/{id}: {get: {operationId: same, parameters: [{name: id, in: path, required: true, schema: {}}, {name: id, in: query, schema: {}}]}}
`

func TestStyles(t *testing.T) {
	s := newServer(t, nil, "X-V", "Cookie")
	api := load(t, s.options(file(t, "styles.yaml", styles)))
	const object = `{"v":{"R":100,"G":"a b"}}`
	for _, c := range []struct{ name, args, want string }{
		{"simple", `{"v":"a/b c"}`, "GET /simple/a%2Fb%20c"},
		{"simple", `{"v":["x","y"]}`, "GET /simple/x,y"},
		{"simple", object, "GET /simple/R,100,G,a%20b"},
		{"simple_explode", object, "GET /simple-explode/R=100,G=a%20b"},
		{"simple", `{"v":9007199254740993}`, "GET /simple/9007199254740993"},
		{"label", `{"v":["x","y"]}`, "GET /label/.x,y"},
		{"label_explode", `{"v":["x","y"]}`, "GET /label-explode/.x.y"},
		{"label_explode", object, "GET /label-explode/.R=100.G=a%20b"},
		{"matrix", `{"v":["x","y"]}`, "GET /matrix/;v=x,y"},
		{"matrix_explode", `{"v":["x","y"]}`, "GET /matrix-explode/;v=x;v=y"},
		{"matrix_explode", object, "GET /matrix-explode/;R=100;G=a%20b"},
		{"undeclared", `{"v":"1"}`, "GET /undeclared/1.json"},
		{"form", `{"v":["x","y&z"]}`, "GET /form?v=x&v=y%26z"},
		{"form", object, "GET /form?R=100&G=a%20b"},
		{"form", `{"v":null}`, "GET /form"},
		{"form", `{"v":false}`, "GET /form?v=false"},
		{"form_joined", `{"v":["x","y,z"]}`, "GET /form-joined?v=x,y%2Cz"},
		{"form_joined", object, "GET /form-joined?v=R,100,G,a%20b"},
		{"space", `{"v":["x","y"]}`, "GET /space?v=x%20y"},
		{"pipe", `{"v":["x","y"]}`, "GET /pipe?v=x%7Cy"},
		{"deep", `{"v":{"a":{"b":1},"c":["x","y"]}}`, "GET /deep?v[a][b]=1&v[c][0]=x&v[c][1]=y"},
		{"reserved", `{"v":"a/b?c=d&e"}`, "GET /reserved?v=a/b?c%3Dd%26e"},
		{"json", object, "GET /json?v=%7B%22R%22%3A100%2C%22G%22%3A%22a%20b%22%7D"},
		{"header", `{"X-V":["x","y"]}`, "GET /header\nX-V: x,y"},
		{"header_explode", `{"X-V":{"a":1,"b":2}}`, "GET /header-explode\nX-V: a=1,b=2"},
		{"cookie", `{"v":"a;b"}`, "GET /cookie\nCookie: v=a%3Bb"},
		{"same", `{"id":1,"id_query":2}`, "GET /same/1?id=2"},
	} {
		call(t, api, c.name, c.args)
		if got := s.last(); got != c.want {
			t.Errorf("%s(%s) sent\n%s\nwant\n%s", c.name, c.args, got, c.want)
		}
	}
}

// An argument cannot lead to another operation, to another host, or into the headers.
func TestArgumentsStayInPlace(t *testing.T) {
	s := newServer(t, nil)
	api := load(t, s.options(file(t, "styles.yaml", styles)))
	for _, c := range []struct{ name, args string }{
		{"simple", `{"v":".."}`}, {"simple", `{"v":""}`}, {"simple", `{"v":"x/../y"}`}, {"simple", `{"v":"%2e%2e"}`},
		{"simple", `{"v":"..\\admin"}`}, {"simple", `{"v":"%2e%2e%2fadmin"}`}, {"simple", `{"v":null}`}, {"simple", `{}`},
		{"undeclared", `{"v":"../x"}`}, {"header", `{"X-V":"a\r\nX-Admin: 1"}`}, {"simple", `{"v":"a","other":1}`}, {"simple", `[]`},
	} {
		_, err := api.Call(t.Context(), c.name, json.RawMessage(c.args))
		if _, ok := errors.AsType[*webapi.ArgumentError](err); !ok {
			t.Errorf("%s(%s): error %v, sent %s", c.name, c.args, err, s.last())
		}
	}
	for args, want := range map[string]string{`{"v":"@evil.example"}`: "/simple/@evil.example", `{"v":"a?b#c"}`: "/simple/a%3Fb%23c"} {
		call(t, api, "simple", args)
		if got := s.last(); got != "GET "+want {
			t.Errorf("%s sent %s", args, got)
		}
	}
}

const bodies = `
openapi: 3.1.0
info: {title: bodies, version: "1"}
paths:
  /flat/{id}:
    post:
      operationId: flat
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      requestBody:
        required: true
        content: {application/json: {schema: {type: object, required: [name, id], properties: {name: {type: string}, id: {type: integer}, made: {type: string, readOnly: true}}}}}
  /list: {post: {operationId: list, requestBody: {required: true, content: {application/json: {schema: {type: array, items: {type: string}}}}}}}
  /optional: {post: {operationId: optional, requestBody: {content: {application/json: {schema: {type: object, properties: {a: {type: string}}}}}}}}
  /form:
    post:
      operationId: form
      requestBody:
        content:
          application/x-www-form-urlencoded:
            schema: {type: object, properties: {amount: {type: integer}, tags: {type: array, items: {type: string}}, metadata: {type: object}, items: {type: array, items: {type: object}}}}
            encoding: {metadata: {style: deepObject, explode: true}, tags: {style: deepObject, explode: true}}
  /upload:
    post:
      operationId: upload
      requestBody:
        content:
          multipart/form-data:
            schema: {type: object, properties: {file: {type: string, format: binary}, note: {type: string}, meta: {type: object}}}
            encoding: {file: {contentType: image/png}}
  /bytes: {put: {operationId: bytes, requestBody: {required: true, content: {application/octet-stream: {schema: {type: string, format: binary}}}}}}
  /text: {put: {operationId: text, requestBody: {required: true, content: {text/plain: {schema: {type: string}}}}}}
`

func TestBodies(t *testing.T) {
	s := newServer(t, nil, "Content-Type")
	api := load(t, s.options(file(t, "bodies.yaml", bodies)))
	for _, c := range []struct{ name, args, want string }{
		{"flat", `{"id_path":"p","name":"n <&>","id":9007199254740993}`, "POST /flat/p\nContent-Type: application/json\n{\"name\":\"n <&>\",\"id\":9007199254740993}"},
		{"list", `{"body":["a"]}`, "POST /list\nContent-Type: application/json\n[\"a\"]"},
		{"optional", `{}`, "POST /optional"},
		{"form", `{"amount":5,"tags":["a","b"],"metadata":{"k":"v w"},"items":[{"price":"p"}]}`, "POST /form\nContent-Type: application/x-www-form-urlencoded\namount=5&tags[0]=a&tags[1]=b&metadata[k]=v%20w&items[0][price]=p"},
		{"bytes", `{"body":"AAEC"}`, "PUT /bytes\nContent-Type: application/octet-stream\n\x00\x01\x02"},
		{"text", `{"body":"hi"}`, "PUT /text\nContent-Type: text/plain\nhi"},
	} {
		call(t, api, c.name, c.args)
		if got := s.last(); got != c.want {
			t.Errorf("%s(%s) sent\n%q\nwant\n%q", c.name, c.args, got, c.want)
		}
	}
	if in := string(definitions(t, api)["flat"].Input); strings.Contains(in, "made") || !strings.Contains(in, `"id_path"`) {
		t.Errorf("input of flat: %s", in)
	}
}

func TestMultipart(t *testing.T) {
	s := newServer(t, nil, "Content-Type")
	api := load(t, s.options(file(t, "bodies.yaml", bodies)))
	call(t, api, "upload", `{"file":"AAEC","note":"hello","meta":{"a":1}}`)
	lines := strings.SplitN(s.last(), "\n", 3)
	_, params, err := mime.ParseMediaType(strings.TrimPrefix(lines[1], "Content-Type: "))
	if err != nil {
		t.Fatal(err)
	}
	r := multipart.NewReader(strings.NewReader(lines[2]), params["boundary"])
	var got []string
	for {
		p, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(p)
		got = append(got, p.FormName()+" "+p.FileName()+" "+p.Header.Get("Content-Type")+" "+string(data))
	}
	if want := "file file image/png \x00\x01\x02|note   hello|meta  application/json {\"a\":1}"; strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}

const answers = `
openapi: 3.0.0
info: {title: answers, version: "1"}
paths:
  /object: {get: {operationId: object, responses: {"200": {content: {application/json: {schema: {type: object, properties: {a: {type: string}}}}}}}}}
  /array: {get: {operationId: array, responses: {"200": {content: {application/json: {schema: {type: array, items: {type: string}}}}}}}}
  /none: {get: {operationId: none, responses: {"204": {description: done}}}}
`

// A response is returned as it is, also if it is not as declared.
func TestResults(t *testing.T) {
	var status int
	var kind, body string
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	api := load(t, s.options(file(t, "answers.yaml", answers)))
	for _, c := range []struct {
		tool, kind, body string
		status           int
		structured, text string
		failed           bool
	}{
		{"object", "application/json", `{"a":"x","n":9007199254740993}`, 200, `{"a":"x","n":9007199254740993}`, `{"a":"x","n":9007199254740993}`, false},
		{"object", "application/json", `[1]`, 200, "", `[1]`, false},
		{"object", "text/html", `<p>`, 200, "", `<p>`, false},
		{"object", "application/json", `{"a":`, 200, "", `{"a":`, false},
		{"array", "application/json", `["x"]`, 200, `{"result":["x"]}`, `["x"]`, false},
		{"array", "application/json", `{"x":1}`, 200, `{"result":{"x":1}}`, `{"x":1}`, false},
		{"none", "", "", 204, "", "HTTP 204 No Content", false},
		{"none", "application/json", strings.Repeat("[", 600) + strings.Repeat("]", 600), 200, "", strings.Repeat("[", 600) + strings.Repeat("]", 600), false},
		{"object", "application/json", `{"message":"Not Found"}`, 404, "", "HTTP 404 Not Found: {\"message\":\"Not Found\"}\nRetry-After: 7", true},
		{"object", "text/plain", strings.Repeat("x", 9000), 500, "", "HTTP 500 Internal Server Error: " + strings.Repeat("x", 3999) + "…\nRetry-After: 7", true},
	} {
		status, kind, body = c.status, c.kind, c.body
		r := call(t, api, c.tool, `{}`)
		if string(r.Structured) != c.structured || r.Content[0].Text != c.text || r.IsError != c.failed {
			t.Errorf("%s of %d %.60s: %s, %.200s, %v", c.tool, c.status, c.body, r.Structured, r.Content[0].Text, r.IsError)
		}
	}
	status, kind, body = 200, "image/png", "\x89PNG"
	if r := call(t, api, "none", `{}`); r.Content[0].Type != "image" || r.Content[0].Data != "iVBORw==" {
		t.Errorf("image: %+v", r)
	}
	kind = "application/zip"
	if r := call(t, api, "none", `{}`); r.Content[0].Resource.Blob != "iVBORw==" {
		t.Errorf("blob: %+v", r)
	}
}

func TestResponseLimit(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 2000)) })
	opts := s.options(file(t, "answers.yaml", answers))
	opts.MaxResponse = 1000
	if r := call(t, load(t, opts), "none", ""); !r.IsError || !strings.Contains(r.Content[0].Text, "more than 1000 bytes") {
		t.Errorf("result %+v", r)
	}
}

// A redirect to another host is not followed: it would get the arguments and the credentials.
func TestRedirects(t *testing.T) {
	other := newServer(t, nil)
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/object":
			http.Redirect(w, r, "/none?again=1", http.StatusFound)
		case "/array":
			http.Redirect(w, r, other.URL+"/x?token=abc", http.StatusTemporaryRedirect)
		}
	}, "X-Key")
	opts := s.options(file(t, "answers.yaml", answers))
	opts.Headers = map[string]string{"X-Key": "k-1234567890"}
	api := load(t, opts)
	call(t, api, "object", `{}`)
	if got := s.last(); got != "GET /none?again=1\nX-Key: k-1234567890" {
		t.Errorf("within the host: %s", got)
	}
	if r := call(t, api, "array", `{}`); !r.IsError || !strings.Contains(r.Content[0].Text, other.URL+"/x") || other.last() != "" {
		t.Errorf("to another host: %+v, %s", r, other.last())
	}
}

func TestCredentials(t *testing.T) {
	s := newServer(t, nil, "Authorization", "X-Key")
	doc := file(t, "d.yaml", `
openapi: 3.0.0
info: {title: x, version: "1"}
paths: {/a: {get: {operationId: a, parameters: [{name: key, in: query, required: true, schema: {type: string}}, {name: x-key, in: header, schema: {type: string}}, {name: q, in: query, schema: {type: string}}]}}}
`)
	opts := s.options(doc)
	opts.Headers, opts.Query, opts.Username, opts.Password = map[string]string{"X-Key": "h"}, map[string]string{"key": "q k"}, "ann", "pw"
	api := load(t, opts)
	call(t, api, "a", `{"q":"1"}`)
	if got, want := s.last(), "GET /a?q=1&key=q%20k\nAuthorization: Basic YW5uOnB3\nX-Key: h"; got != want {
		t.Errorf("sent %s", got)
	}
	if in := string(definitions(t, api)["a"].Input); strings.Contains(in, "key") {
		t.Errorf("the settings send the key, but it is an argument: %s", in)
	}
}
