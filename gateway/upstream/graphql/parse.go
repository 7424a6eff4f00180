package graphql

import (
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/sanitize"
)

// parseSelection reads the fields to return of a call with some arguments. It is parsed by itself, so nothing in it can end the selection
// and begin another operation.
func (a *API) parseSelection(o *operation, value any, args []string) (ast.SelectionSet, error) {
	text, ok := value.(string)
	if !ok {
		return nil, webapi.Invalid("%s must be a text, as { id owner { login } }", o.selectArg)
	}
	text = strings.TrimSpace(text)
	if len(text) > maxSelect {
		return nil, webapi.Invalid("%s has more than %d bytes", o.selectArg, maxSelect)
	}
	if !strings.HasPrefix(text, "{") {
		text = "{" + text + "\n}"
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, maxSelectToks)
	if err != nil {
		return nil, webapi.Invalid("%s is not a selection, as { id owner { login } }: %s", o.selectArg, messageOf(err))
	}
	if len(doc.Operations) != 1 || len(doc.Fragments) > 0 || !isAnonymous(doc.Operations[0]) {
		return nil, webapi.Invalid("%s must be one selection, as { id owner { login } }; inline fragments (... on TYPE { }) are allowed, named ones are not", o.selectArg)
	}
	set := doc.Operations[0].SelectionSet
	if err := a.check(a.schema.Types[o.field.Type.Name()], set); err != nil {
		return nil, webapi.Invalid("%s: %s", o.selectArg, err)
	}
	return set, a.validate(o, o.document(args, set))
}

func isAnonymous(o *ast.OperationDefinition) bool {
	return o.Operation == ast.Query && o.Name == "" && len(o.VariableDefinitions) == 0 && len(o.Directives) == 0
}

func messageOf(err error) string {
	text := strings.TrimPrefix(err.Error(), "input:")
	return sanitize.Line(text, 300)
}

// check reports fields that do not exist, and completes objects without a selection.
func (a *API) check(def *ast.Definition, set ast.SelectionSet) error {
	for _, s := range set {
		var err error
		switch s := s.(type) {
		case *ast.InlineFragment:
			err = a.checkFragment(def, s)
		case *ast.Field:
			err = a.checkField(def, s)
		default:
			err = fmt.Errorf("named fragments are not allowed")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *API) checkFragment(def *ast.Definition, s *ast.InlineFragment) error {
	if s.TypeCondition == "" {
		return a.check(def, s.SelectionSet)
	}
	of := a.schema.Types[s.TypeCondition]
	if of == nil || !of.IsCompositeType() || a.isRoot(of.Name) {
		return fmt.Errorf("there is no type %.80q", s.TypeCondition)
	}
	return a.check(of, s.SelectionSet)
}

func (a *API) checkField(def *ast.Definition, f *ast.Field) error {
	if f.Name == "__typename" {
		return nil
	}
	of := def.Fields.ForName(f.Name)
	if of == nil || strings.HasPrefix(f.Name, "__") {
		return fmt.Errorf("%s has no field %.80q; it has %s", def.Name, f.Name, a.fieldNames(def))
	}
	if f.Alias != f.Name && def.Fields.ForName(f.Alias) != nil {
		return fmt.Errorf("the alias %s is the name of another field of %s; choose another one", f.Alias, def.Name)
	}
	if a.isRoot(of.Type.Name()) {
		return fmt.Errorf("%s leads back to all queries and mutations; call their tools", f.Name)
	}
	if !a.isComposite(of) {
		return nil
	}
	if len(f.SelectionSet) == 0 {
		f.SelectionSet = a.shortFields(a.schema.Types[of.Type.Name()])
	}
	return a.check(a.schema.Types[of.Type.Name()], f.SelectionSet)
}

// fieldNames lists the fields of a type for an error.
func (a *API) fieldNames(def *ast.Definition) string {
	const most = 40
	var names []string
	for _, f := range def.Fields {
		if !isDeprecated(f) && !strings.HasPrefix(f.Name, "__") {
			names = append(names, f.Name)
		}
	}
	switch {
	case len(names) == 0 && def.Kind == ast.Union:
		return "one of the types " + strings.Join(def.Types[:min(len(def.Types), most)], ", ") + ": use ... on TYPE { }"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + " and more (" + a.describeTool + " shows all)"
	}
	return strings.Join(names, ", ")
}

// document returns the text of the request of a call with some arguments.
func (o *operation) document(args []string, set ast.SelectionSet) string {
	field := newField(o.field.Name, set)
	op := &ast.OperationDefinition{Operation: o.kind}
	for _, name := range args {
		of := o.field.Arguments.ForName(name)
		op.VariableDefinitions = append(op.VariableDefinitions, &ast.VariableDefinition{Variable: name, Type: of.Type})
		field.Arguments = append(field.Arguments, &ast.Argument{Name: name, Value: &ast.Value{Kind: ast.Variable, Raw: name}})
	}
	op.SelectionSet = ast.SelectionSet{field}
	var b strings.Builder
	formatter.NewFormatter(&b, formatter.WithCompacted()).FormatQueryDocument(&ast.QueryDocument{Operations: ast.OperationList{op}})
	return strings.TrimSpace(b.String())
}

// validate checks the request of a selection as the server will: arguments of its fields, fragments, and fields that cannot be together.
func (a *API) validate(o *operation, text string) error {
	doc, err := parser.ParseQuery(&ast.Source{Input: text})
	if err != nil {
		return webapi.Invalid("%s makes an invalid request: %s", o.selectArg, messageOf(err))
	}
	if len(doc.Operations) != 1 || len(doc.Fragments) > 0 || len(doc.Operations[0].SelectionSet) != 1 {
		return webapi.Invalid("%s makes more than one request", o.selectArg)
	}
	if errs := validator.ValidateWithRules(a.schema, doc, rules.NewDefaultRules()); len(errs) > 0 {
		return webapi.Invalid("%s: %s", o.selectArg, sanitize.Line(errs[0].Message, 300))
	}
	return nil
}
