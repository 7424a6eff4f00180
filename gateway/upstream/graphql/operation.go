package graphql

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"sallyport/gateway/upstream/apitools"
	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/jsonobject"
	"sallyport/internal/sanitize"
)

const (
	maxDescription = 1000
	maxNested      = 300 // characters of the description of an argument or a field
	maxMore        = 12  // fields that the description of a selection names
)

// operation is one query or mutation.
type operation struct {
	name      string
	kind      ast.Operation
	field     *ast.FieldDefinition
	selectArg string           // the argument with the fields to return, "" if the result has none
	selection ast.SelectionSet // what is returned by default; guarded by API.mu
	wrap      bool             // the result is {"result": VALUE}
}

// allOperations returns the operations that become tools, in the order of the schema.
func (a *API) allOperations() ([]*operation, error) {
	var all []*operation
	for _, root := range []struct {
		kind ast.Operation
		def  *ast.Definition
	}{{ast.Query, a.schema.Query}, {ast.Mutation, a.schema.Mutation}} {
		if root.def == nil {
			continue
		}
		for _, f := range root.def.Fields {
			switch {
			case strings.HasPrefix(f.Name, "__") || !a.opts.takes(root.kind, f.Name):
			case a.isRoot(f.Type.Name()):
				a.skip(root.kind, f.Name, "its result is all queries or mutations again")
			default:
				all = append(all, a.newOperation(root.kind, f))
			}
		}
	}
	if len(all) > maxOperations {
		return nil, fmt.Errorf("the GraphQL schema has more than %d queries and mutations; choose some with include", maxOperations)
	}
	nameOperations(all)
	return all, nil
}

// takes reports whether the settings choose a field.
func (o *Options) takes(kind ast.Operation, name string) bool {
	about := func(glob string) bool {
		if of, rest, found := strings.Cut(glob, ":"); found {
			glob = rest
			if of != string(kind) {
				return false
			}
		}
		ok, err := path.Match(glob, name)
		return err == nil && ok
	}
	return (len(o.Include) == 0 || slices.ContainsFunc(o.Include, about)) && !slices.ContainsFunc(o.Exclude, about)
}

// isRoot reports whether a type has the queries, mutations or subscriptions. A selection cannot go through it: so each of them is called
// by its own tool only, which policy can refuse.
func (a *API) isRoot(name string) bool {
	for _, root := range []*ast.Definition{a.schema.Query, a.schema.Mutation, a.schema.Subscription} {
		if root != nil && root.Name == name {
			return true
		}
	}
	return false
}

func (a *API) newOperation(kind ast.Operation, f *ast.FieldDefinition) *operation {
	o := &operation{name: f.Name, kind: kind, field: f}
	result := a.schema.Types[f.Type.Name()]
	if o.wrap = true; f.Type.Elem == nil && f.Type.NonNull && result.IsCompositeType() {
		o.wrap = false
	}
	if result.IsCompositeType() {
		for o.selectArg = "select"; f.Arguments.ForName(o.selectArg) != nil; {
			o.selectArg += "_"
		}
		o.selection = a.defaultSelection(result)
	}
	return o
}

// nameOperations gives names to those that have the same but for case: first the kind, and if that is not enough a digest of the field.
func nameOperations(all []*operation) {
	for _, rename := range []func(*operation) string{
		func(o *operation) string { return string(o.kind) + "_" + o.field.Name },
		func(o *operation) string {
			sum := sha256.Sum256([]byte(string(o.kind) + " " + o.field.Name))
			return o.name + "_" + hex.EncodeToString(sum[:4])
		},
	} {
		apitools.Distinguish(all, func(o *operation) *string { return &o.name }, rename)
	}
}

// definition returns the definition of the tool of an operation.
func (a *API) definition(o *operation) json.RawMessage {
	tool := jsonobject.Of("name", o.name, "description", o.describe(), "inputSchema", a.inputSchema(o), "outputSchema", a.outputSchema(o))
	if o.kind == ast.Query {
		tool.Set("annotations", jsonobject.Of("readOnlyHint", true, "destructiveHint", false, "idempotentHint", true))
	} else {
		tool.Set("annotations", jsonobject.Of("readOnlyHint", false))
	}
	return webapi.AppendJSON(nil, tool)
}

// describe returns the description of a tool: what the schema says, and the field. The field is part of it so that a tool which calls
// another one is a changed tool.
func (o *operation) describe() string {
	var lines []string
	if d := o.field.Directives.ForName("deprecated"); d != nil {
		lines = append(lines, strings.TrimSpace("Deprecated. "+reasonOf(d)))
	}
	if text := prose(o.field.Description, maxDescription); text != "" {
		lines = append(lines, text)
	}
	return strings.Join(append(lines, string(o.kind)+" "+o.field.Name+": "+o.field.Type.String()), "\n")
}

func reasonOf(d *ast.Directive) string {
	if arg := d.Arguments.ForName("reason"); arg != nil && arg.Value != nil {
		return prose(arg.Value.Raw, maxNested)
	}
	return ""
}

// prose returns a description of at most n characters.
func prose(text string, n int) string { return strings.TrimSpace(sanitize.Text(text, n)) }

// describeSelect describes the argument with the fields to return.
func (a *API) describeSelect(o *operation) string {
	def := a.schema.Types[o.field.Type.Name()]
	if inner, _ := a.elements(def); inner != nil {
		def = a.schema.Types[inner.Type.Name()]
	}
	var more []string
	for _, f := range def.Fields {
		if a.isComposite(f) && !a.isRoot(f.Type.Name()) && !hasField(o.selection, f.Name) && f.Directives.ForName("deprecated") == nil {
			more = append(more, f.Name)
		}
	}
	text := "Fields to return, as { id owner { login } }. Default: the plain fields."
	if len(more) > maxMore {
		more = append(more[:maxMore], "…")
	}
	if len(more) > 0 {
		text += " " + def.Name + " also has " + strings.Join(more, ", ") + "."
	}
	return text
}

func hasField(set ast.SelectionSet, name string) bool {
	return slices.ContainsFunc(set, func(s ast.Selection) bool {
		f, ok := s.(*ast.Field)
		return ok && (f.Name == name || hasField(f.SelectionSet, name))
	})
}

func (a *API) isComposite(f *ast.FieldDefinition) bool {
	return a.schema.Types[f.Type.Name()].IsCompositeType()
}
