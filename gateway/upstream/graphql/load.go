package graphql

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"sallyport/gateway/upstream/apitools"
	"sallyport/internal/sanitize"
)

// readSchema reads the schema from its file, or asks the API.
func (a *API) readSchema(ctx context.Context) (*ast.Schema, error) {
	if a.opts.Schema == "" {
		data, err := a.introspect(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask for the GraphQL schema: %w", err)
		}
		return parseSchema(data)
	}
	data, err := apitools.ReadFile(a.opts.Schema, maxSchema)
	if err != nil {
		return nil, fmt.Errorf("read the GraphQL schema: %w", err)
	}
	return parseSchema(data)
}

// introspect returns the description of the schema that the API gives.
func (a *API) introspect(ctx context.Context) ([]byte, error) {
	resp, err := a.post(ctx, introspectionQuery, json.RawMessage("{}"))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxSchema+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxSchema:
		return nil, fmt.Errorf("it has more than %d MiB", maxSchema>>20)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the server answers HTTP %d: %s", resp.StatusCode, sanitize.Line(string(data), 300))
	}
	return data, nil
}

// parseSchema parses a schema of either form. The parser is a library that reads text of a stranger, so a panic of it is an error.
func parseSchema(data []byte) (schema *ast.Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			schema, err = nil, errors.New("the GraphQL schema is invalid: it cannot be parsed")
		}
	}()
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var doc *ast.SchemaDocument
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		doc, err = fromIntrospection(trimmed)
	} else {
		doc, err = parser.ParseSchemaWithLimit(&ast.Source{Name: "schema", Input: string(data)}, maxTokens)
	}
	if err == nil {
		repair(doc)
		whole := validator.PreludeDocument()
		whole.Merge(withoutPrelude(doc, whole))
		schema, err = validator.ValidateSchemaDocument(whole)
	}
	if err != nil {
		return nil, fmt.Errorf("the GraphQL schema is invalid: %s", sanitize.Line(err.Error(), 300))
	}
	return schema, nil
}

// withoutPrelude removes what every schema has, from one that repeats it.
func withoutPrelude(doc, prelude *ast.SchemaDocument) *ast.SchemaDocument {
	kept := doc.Definitions[:0]
	for _, d := range doc.Definitions {
		if prelude.Definitions.ForName(d.Name) == nil {
			kept = append(kept, d)
		}
	}
	doc.Definitions = kept
	return doc
}

// repair removes what real files have and the specification forbids, and what means nothing here: directives that are used and not
// defined, and fields that are defined twice.
func repair(doc *ast.SchemaDocument) {
	doc.Directives, doc.DirectiveExtensions = nil, nil
	for _, s := range append(doc.Schema, doc.SchemaExtension...) {
		s.Directives = nil
	}
	for _, d := range append(doc.Definitions, doc.Extensions...) {
		d.Directives = knownOf(d.Directives)
		seen := map[string]bool{}
		d.Fields = slices.DeleteFunc(d.Fields, func(f *ast.FieldDefinition) bool {
			twice := seen[f.Name]
			seen[f.Name] = true
			return twice
		})
		for _, f := range d.Fields {
			f.Directives = knownOf(f.Directives)
			for _, arg := range f.Arguments {
				arg.Directives = knownOf(arg.Directives)
			}
		}
		for _, v := range d.EnumValues {
			v.Directives = knownOf(v.Directives)
		}
	}
}

func knownOf(all ast.DirectiveList) (kept ast.DirectiveList) {
	for _, d := range all {
		if d.Name == "deprecated" || d.Name == "oneOf" {
			kept = append(kept, d)
		}
	}
	return kept
}
