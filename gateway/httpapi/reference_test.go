package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/testutil/refpage"
)

// A documented is the part of the OpenAPI document that the reference shows.
type documented struct {
	Tags  []struct{ Name, Description string }
	Paths map[string]map[string]documentedRoute

	Components struct {
		Responses map[string]struct{ Description string }
	}
}

type documentedRoute struct {
	Summary     string
	Scope       string `json:"x-scope"`
	Tags        []string
	Parameters  []parameter
	RequestBody struct{ Content content }
	Responses   map[string]struct {
		Ref     string `json:"$ref"`
		Content content
	}
}

// content is schemas by media type.
type content map[string]struct{ Schema schemaRef }

type schemaRef struct {
	Ref string `json:"$ref"`
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                struct {
		Type, Format     string
		Enum             []string
		Default          any
		Minimum, Maximum *int
		MaxLength        *int
	}
}

// methods are the methods in the order of the page.
var methods = []string{"get", "post", "put", "delete"}

// TestReference holds docs/reference/http-api.md to the OpenAPI document.
func TestReference(t *testing.T) {
	data, err := os.ReadFile("openapi.json") // not the embedded one, which TestOpenAPI may have rewritten
	if err != nil {
		t.Fatal(err)
	}
	var doc documented
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	p := refpage.New("http-api.md", "HTTP API", "gateway/httpapi", "TestReference")
	p.Text("Every route of the JSON API below `/api`. The same document for programs is at `/api/openapi.json`. " +
		"[The guide](../how-to/use-the-api.md) has examples. A request needs a token with the scope of its route; [access](../how-to/access.md) explains tokens.")
	p.Heading(2, "Errors")
	p.Text("The body of an error is a `Problem` (RFC 9457, `application/problem+json`). Every status means the same on every route.")
	p.List(doc.errors())
	shown := 0
	for _, tag := range doc.Tags {
		p.Heading(2, strings.ToUpper(tag.Name[:1])+tag.Name[1:])
		p.Text(refpage.Escape(refpage.Sentence(tag.Description)))
		shown += doc.routes(p, tag.Name)
	}
	all := 0
	for _, of := range doc.Paths {
		all += len(of)
	}
	if shown != all || shown < 40 {
		t.Errorf("%d routes of %d", shown, all)
	}
	p.Check(t)
}

// errors describes each status that is the same on all routes.
func (doc documented) errors() (items []string) {
	meanings := map[string]string{}
	for _, of := range doc.Paths {
		for _, op := range of {
			for status, r := range op.Responses {
				if name, ok := strings.CutPrefix(r.Ref, "#/components/responses/"); ok {
					meanings[status] = doc.Components.Responses[name].Description
				}
			}
		}
	}
	for _, status := range slices.Sorted(maps.Keys(meanings)) {
		items = append(items, refpage.Quote(status)+": "+refpage.Escape(refpage.Sentence(meanings[status])))
	}
	return items
}

// routes writes the routes with a tag and returns their number.
func (doc documented) routes(p *refpage.Page, tag string) (count int) {
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range methods {
			op, ok := doc.Paths[path][method]
			if !ok || !slices.Contains(op.Tags, tag) {
				continue
			}
			count++
			p.Heading(3, strings.ToUpper(method)+" "+path)
			p.Text(refpage.Escape(refpage.Sentence(op.Summary)) + " " + scopeWords(op.Scope))
			p.List(op.items())
		}
	}
	return count
}

func scopeWords(scope string) string {
	if scope == "" {
		return "It needs no scope."
	}
	return "Scope: " + refpage.Quote(scope) + "."
}

// items lists what a route takes and gives.
func (op documentedRoute) items() (items []string) {
	for _, q := range op.Parameters {
		items = append(items, q.words())
	}
	if body := op.RequestBody.Content; body != nil {
		items = append(items, "body: "+body.words())
	}
	var failures []string
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		switch status = refpage.Quote(status); {
		case r.Ref != "":
			failures = append(failures, status)
		case len(r.Content) > 0:
			items = append(items, status+": "+r.Content.words())
		default:
			items = append(items, status+": no body")
		}
	}
	return append(items, "errors: "+strings.Join(failures, ", "))
}

// words names the media types and schemas.
func (c content) words() string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		text := refpage.Quote(kind)
		if ref := c[kind].Schema.Ref; ref != "" {
			text += " (" + refpage.Quote(ref[strings.LastIndex(ref, "/")+1:]) + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, " or ")
}

// words describes a parameter.
func (q parameter) words() string {
	facts := []string{q.In}
	switch s := q.Schema; {
	case s.Enum != nil:
		facts = append(facts, refpage.QuoteAll(s.Enum))
	case s.Format != "":
		facts = append(facts, s.Format)
	case s.Minimum != nil && s.Maximum != nil:
		facts = append(facts, fmt.Sprintf("%s from %d to %d", s.Type, *s.Minimum, *s.Maximum))
	case s.MaxLength != nil:
		facts = append(facts, fmt.Sprintf("%s of at most %d characters", s.Type, *s.MaxLength))
	default:
		facts = append(facts, s.Type)
	}
	if q.Schema.Default != nil {
		facts = append(facts, fmt.Sprintf("default %v", q.Schema.Default))
	}
	return fmt.Sprintf("%s (%s): %s", refpage.Quote(q.Name), strings.Join(facts, "; "), refpage.Escape(refpage.Sentence(q.Description)))
}
