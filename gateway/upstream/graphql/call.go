package graphql

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"sallyport/gateway/upstream/apitools"
	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/jsonobject"
	"sallyport/internal/sanitize"
)

const (
	maxErrors    = 5    // errors of a response that are shown
	maxErrorText = 4000 // characters of what there is of the data that comes with errors
)

// response is the response of a GraphQL server.
type response struct {
	Data   map[string]json.RawMessage `json:"data"`
	Errors []responseError            `json:"errors"`
}

type responseError struct {
	Message    string `json:"message"`
	Path       []any  `json:"path"`
	Extensions struct {
		Code any `json:"code"`
	} `json:"extensions"`
}

// Call calls a tool and returns the result of tools/call. Errors of the server are results with isError. The error is a
// [*webapi.ArgumentError], or that of the transport.
func (a *API) Call(ctx context.Context, name string, raw json.RawMessage) (json.RawMessage, error) {
	if name == a.describeTool {
		return a.describeType(raw)
	}
	o := a.operations[name]
	if o == nil {
		return nil, webapi.Invalid("there is no tool %.80q", name)
	}
	args, err := o.arguments(raw)
	if err != nil {
		return nil, err
	}
	set, own := a.defaultOf(o), false
	variables := args.Clone(o.selectArg)
	if o.selectArg != "" && args.Has(o.selectArg) {
		if set, err = a.parseSelection(o, args.Get(o.selectArg), variables.Keys()); err != nil {
			return nil, err
		}
		own = true
	}
	result, resp, err := a.send(ctx, o, variables, set)
	if err != nil || result != nil {
		return result, err
	}
	if refused := resp.refusedFields(o); o.kind == ast.Query && !own && len(refused) > 0 {
		return a.callWithout(ctx, o, variables, set, refused)
	}
	return o.resultOf(resp), nil
}

// callWithout sends a query again without the fields that the server refused in the default selection, as those that need
// more rights. Later calls do not ask for them.
func (a *API) callWithout(ctx context.Context, o *operation, variables *object, set ast.SelectionSet, refused [][]string) (json.RawMessage, error) {
	rest := without(set, refused)
	if len(rest) == 0 {
		rest = ast.SelectionSet{newField("__typename", nil)}
	}
	result, resp, err := a.send(ctx, o, variables, rest)
	if err != nil || result != nil {
		return result, err
	}
	if len(resp.Errors) == 0 {
		a.mu.Lock()
		o.selection = rest
		a.mu.Unlock()
	}
	return o.resultOf(resp), nil
}

func (a *API) defaultOf(o *operation) ast.SelectionSet {
	a.mu.Lock()
	defer a.mu.Unlock()
	return o.selection
}

// arguments parses the arguments.
func (o *operation) arguments(raw json.RawMessage) (*object, error) {
	args, err := apitools.Arguments(raw, maxNesting)
	if err != nil {
		return nil, err
	}
	return args, o.checkArguments(args)
}

// checkArguments refuses arguments that are unknown or missing, and removes those that are null where null is no value.
func (o *operation) checkArguments(args *object) error {
	for _, name := range slices.Clone(args.Keys()) {
		of := o.field.Arguments.ForName(name)
		if of == nil && (name != o.selectArg || o.selectArg == "") {
			return webapi.Invalid("unknown argument %.80q", name)
		}
		if args.Get(name) == nil && (of == nil || of.Type.NonNull) {
			args.Remove(name)
		}
	}
	for _, of := range o.field.Arguments {
		if of.Type.NonNull && of.DefaultValue == nil && !args.Has(of.Name) {
			return webapi.Invalid("the argument %s is missing", of.Name)
		}
	}
	return nil
}

// send sends a request. It returns the response, or what its failure is as a result.
func (a *API) send(ctx context.Context, o *operation, variables *object, set ast.SelectionSet) (json.RawMessage, *response, error) {
	resp, err := a.post(ctx, o.document(variables.Keys(), set), webapi.AppendJSON(nil, variables))
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	data, tooLarge, err := webapi.ReadBody(resp, a.opts.MaxResponse)
	if err != nil || tooLarge != nil {
		return tooLarge, nil, err
	}
	found := &response{}
	wellFormed := json.Valid(data) && jsonobject.Nesting(data) <= maxNesting && json.Unmarshal(bytes.ToValidUTF8(data, []byte("\uFFFD")), found) == nil
	if !wellFormed || found.Data == nil && len(found.Errors) == 0 {
		if resp.StatusCode < 300 {
			return webapi.Failed("the response is not one of GraphQL: " + sanitize.Text(strings.ToValidUTF8(string(data), "\uFFFD"), 300)), nil, nil
		}
		resp.Body = io.NopCloser(bytes.NewReader(data))
		return webapi.Failure(resp), nil, nil
	}
	return nil, found, nil
}

// post sends a request to the endpoint.
func (a *API) post(ctx context.Context, text string, variables json.RawMessage) (*http.Response, error) {
	body := webapi.AppendJSON(nil, jsonobject.Of("query", text, "variables", variables))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.opts.Endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, webapi.Invalid("the URL of the API is invalid")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/graphql-response+json, application/json;q=0.9")
	req.Header.Set("User-Agent", "sallyport")
	a.opts.Authorize(req)
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, webapi.WithoutURL(err)
	}
	return resp, nil
}

// refusedFields returns the paths, below the result, of the fields with an error, if there is a result in spite of all errors.
func (r *response) refusedFields(o *operation) (paths [][]string) {
	if data := r.Data[o.field.Name]; len(data) == 0 || string(data) == "null" {
		return nil
	}
	for _, e := range r.Errors {
		var path []string
		for _, part := range e.Path {
			if name, ok := part.(string); ok {
				path = append(path, name)
			}
		}
		if len(path) < 2 || path[0] != o.field.Name {
			return nil
		}
		if !slices.ContainsFunc(paths, func(p []string) bool { return slices.Equal(p, path[1:]) }) {
			paths = append(paths, path[1:])
		}
	}
	return paths
}

// resultOf returns the result of a response. One with errors is an error, with what there is of the data: a part of a result that looks
// like all of it would mislead.
func (o *operation) resultOf(r *response) json.RawMessage {
	data := r.Data[o.field.Name]
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	if len(r.Errors) == 0 {
		return webapi.JSONResult(data, o.wrap)
	}
	text := errorText(r.Errors)
	if string(data) != "null" {
		text += "\nThe rest of the result: " + sanitize.Text(string(data), maxErrorText)
		if o.selectArg != "" {
			text += "\nLeave the fields with errors out with " + o.selectArg + "."
		}
		if o.kind == ast.Mutation {
			text += "\nThe mutation was made; do not repeat it for these fields."
		}
	}
	return webapi.Failed(text)
}

func errorText(all []responseError) string {
	var lines []string
	for i, e := range all {
		if i == maxErrors {
			lines = append(lines, fmt.Sprintf("%d more errors", len(all)-i))
			break
		}
		line := sanitize.Line(strings.ToValidUTF8(e.Message, "\uFFFD"), 500)
		if code, ok := e.Extensions.Code.(string); ok && code != "" {
			line += " (" + sanitize.Line(code, 60) + ")"
		}
		if len(e.Path) > 1 {
			var path []string
			for _, part := range e.Path[1:] {
				path = append(path, fmt.Sprint(part))
			}
			line = sanitize.Line(strings.Join(path, "."), 200) + ": " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
