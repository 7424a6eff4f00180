package graphql

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"sallyport/internal/sanitize"
)

// introspectionQuery asks for all that every version of the specification since 2018 has.
const introspectionQuery = `query IntrospectionQuery {
  __schema {
    queryType { name } mutationType { name } subscriptionType { name }
    types {
      kind name description
      fields(includeDeprecated: true) { name description args { ...Input } type { ...Ref } isDeprecated deprecationReason }
      inputFields { ...Input }
      interfaces { name }
      enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
      possibleTypes { name }
    }
  }
}
fragment Input on __InputValue { name description type { ...Ref } defaultValue }
fragment Ref on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } }`

// The response to introspectionQuery.
type (
	described struct {
		Data   *describedSchema `json:"data"`
		Schema *schemaOfServer  `json:"__schema"` // files are often without "data"
		Errors []responseError  `json:"errors"`
	}
	describedSchema struct {
		Schema *schemaOfServer `json:"__schema"`
	}
	schemaOfServer struct {
		QueryType, MutationType, SubscriptionType *typeRef
		Types                                     []typeOfServer
	}
	typeOfServer struct {
		Kind, Name, Description   string
		Fields                    []fieldOfServer
		InputFields               []inputOfServer
		EnumValues                []fieldOfServer
		Interfaces, PossibleTypes []typeRef
	}
	fieldOfServer struct {
		Name, Description, DeprecationReason string
		IsDeprecated                         bool
		Args                                 []inputOfServer
		Type                                 *typeRef
	}
	inputOfServer struct {
		Name, Description string
		Type              *typeRef
		DefaultValue      *string
	}
	typeRef struct {
		Kind, Name string
		OfType     *typeRef
	}
)

var graphqlName = regexp.MustCompile(`^[_A-Za-z][_0-9A-Za-z]*$`)

func validName(name string) string {
	if !graphqlName.MatchString(name) || len(name) > 200 {
		panicWith("%.80q is not a name", name)
	}
	return name
}

// invalidSchema is what the conversion of a schema panics with; fromIntrospection returns it as an error.
type invalidSchema struct{ error }

func panicWith(format string, args ...any) { panic(invalidSchema{fmt.Errorf(format, args...)}) }

// fromIntrospection converts the description of a schema that a server gives.
func fromIntrospection(data []byte) (doc *ast.SchemaDocument, err error) {
	defer func() {
		if r := recover(); r != nil {
			invalid, ok := r.(invalidSchema)
			if !ok {
				panic(r)
			}
			doc, err = nil, invalid.error
		}
	}()
	var in described
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, errors.New("it is not the JSON of an introspection query")
	}
	schema := in.Schema
	if in.Data != nil && in.Data.Schema != nil {
		schema = in.Data.Schema
	}
	switch {
	case schema == nil && len(in.Errors) > 0:
		return nil, fmt.Errorf("the server refuses to describe it (%s); name a file with the schema", sanitize.Line(in.Errors[0].Message, 200))
	case schema == nil:
		return nil, errors.New("it has no __schema")
	}
	return schema.document(), nil
}

func (s *schemaOfServer) document() *ast.SchemaDocument {
	doc := &ast.SchemaDocument{}
	root := &ast.SchemaDefinition{}
	for kind, ref := range map[ast.Operation]*typeRef{ast.Query: s.QueryType, ast.Mutation: s.MutationType, ast.Subscription: s.SubscriptionType} {
		if ref != nil {
			root.OperationTypes = append(root.OperationTypes, &ast.OperationTypeDefinition{Operation: kind, Type: validName(ref.Name)})
		}
	}
	doc.Schema = ast.SchemaDefinitionList{root}
	for _, t := range s.Types {
		if !strings.HasPrefix(t.Name, "__") {
			doc.Definitions = append(doc.Definitions, t.definition())
		}
	}
	return doc
}

func (t *typeOfServer) definition() *ast.Definition {
	d := &ast.Definition{Kind: ast.DefinitionKind(t.Kind), Name: validName(t.Name), Description: t.Description}
	for _, i := range t.Interfaces {
		d.Interfaces = append(d.Interfaces, validName(i.Name))
	}
	if d.Kind == ast.Union {
		for _, p := range t.PossibleTypes {
			d.Types = append(d.Types, validName(p.Name))
		}
	}
	for _, f := range t.Fields {
		field := &ast.FieldDefinition{Name: validName(f.Name), Description: f.Description, Type: f.Type.resolve(0), Directives: f.directives()}
		for _, arg := range f.Args {
			field.Arguments = append(field.Arguments, &ast.ArgumentDefinition{Name: validName(arg.Name), Description: arg.Description, Type: arg.Type.resolve(0), DefaultValue: arg.defaultValue()})
		}
		d.Fields = append(d.Fields, field)
	}
	for _, f := range t.InputFields {
		d.Fields = append(d.Fields, &ast.FieldDefinition{Name: validName(f.Name), Description: f.Description, Type: f.Type.resolve(0), DefaultValue: f.defaultValue()})
	}
	for _, v := range t.EnumValues {
		d.EnumValues = append(d.EnumValues, &ast.EnumValueDefinition{Name: validName(v.Name), Description: v.Description, Directives: v.directives()})
	}
	return d
}

func (f *fieldOfServer) directives() ast.DirectiveList {
	if !f.IsDeprecated {
		return nil
	}
	reason := &ast.Argument{Name: "reason", Value: &ast.Value{Kind: ast.StringValue, Raw: f.DeprecationReason}}
	return ast.DirectiveList{{Name: "deprecated", Arguments: ast.ArgumentList{reason}, Location: ast.LocationFieldDefinition}}
}

// defaultValue returns the default, which the description has in the language of queries.
func (i *inputOfServer) defaultValue() *ast.Value {
	if i.DefaultValue == nil {
		return nil
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: "{f(a:" + *i.DefaultValue + ")}"}, 10_000)
	if err != nil || len(doc.Operations) != 1 || len(doc.Operations[0].SelectionSet) != 1 {
		return nil
	}
	f, ok := doc.Operations[0].SelectionSet[0].(*ast.Field)
	if !ok || len(f.Arguments) != 1 {
		return nil
	}
	return f.Arguments[0].Value
}

func (r *typeRef) resolve(depth int) *ast.Type {
	switch {
	case r == nil || depth > maxTypeDepth:
		panicWith("a type is missing, or nested more than %d levels", maxTypeDepth)
	case r.Kind == "NON_NULL":
		t := r.OfType.resolve(depth + 1)
		t.NonNull = true
		return t
	case r.Kind == "LIST":
		return ast.ListType(r.OfType.resolve(depth+1), nil)
	}
	return ast.NamedType(validName(r.Name), nil)
}
