package graphql

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/jsonobject"
	"sallyport/internal/suggest"
)

const maxShown = 16_000 // bytes of a type that is shown

// describeDefinition returns the definition of the tool that shows a type.
func (a *API) describeDefinition() json.RawMessage {
	input := jsonobject.Of("type", "object", "properties", jsonobject.Of("name", jsonobject.Of("type", "string", "description", "Name of the type")),
		"required", []any{"name"}, "additionalProperties", false)
	return webapi.AppendJSON(nil, jsonobject.Of("name", a.describeTool,
		"description", "Show the fields of a type of the GraphQL schema, with their arguments and types, to choose fields with select.",
		"inputSchema", input, "annotations", jsonobject.Of("readOnlyHint", true, "destructiveHint", false, "idempotentHint", true, "openWorldHint", false)))
}

func (a *API) describeType(raw json.RawMessage) (json.RawMessage, error) {
	var args struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(raw, &args); err != nil || args.Name == "" {
		return nil, webapi.Invalid("the argument name must be the name of a type")
	}
	def := a.schema.Types[args.Name]
	if def == nil || a.isRoot(def.Name) || strings.HasPrefix(def.Name, "__") {
		hint := ""
		var names []string
		for name := range a.schema.Types {
			names = append(names, name)
		}
		if near := suggest.Of(args.Name, names); near != "" {
			hint = "; did you mean " + near + "?"
		}
		return nil, webapi.Invalid("there is no type %.80q%s", args.Name, hint)
	}
	return webapi.AppendJSON(nil, jsonobject.Of("content", []any{webapi.TextBlock(show(def))})), nil
}

// show returns a type in the schema definition language, without the descriptions of its fields.
func show(def *ast.Definition) string {
	var b strings.Builder
	if text := prose(def.Description, maxNested); text != "" {
		fmt.Fprintf(&b, "# %s\n", strings.ReplaceAll(text, "\n", "\n# "))
	}
	if def.Kind == ast.Union {
		fmt.Fprintf(&b, "union %s = %s\n", def.Name, strings.Join(def.Types, " | "))
		return b.String()
	}
	fmt.Fprintf(&b, "%s %s {\n", keywords[def.Kind], def.Name)
	for _, f := range def.Fields {
		if b.Len() > maxShown {
			b.WriteString("  # and more\n")
			break
		}
		if !isDeprecated(f) && !strings.HasPrefix(f.Name, "__") {
			fmt.Fprintf(&b, "  %s%s: %s\n", f.Name, showArguments(f.Arguments), f.Type)
		}
	}
	for _, v := range def.EnumValues {
		fmt.Fprintf(&b, "  %s\n", v.Name)
	}
	return b.String() + "}"
}

var keywords = map[ast.DefinitionKind]string{ast.Scalar: "scalar", ast.Object: "type", ast.Interface: "interface", ast.Enum: "enum", ast.InputObject: "input"}

func showArguments(args ast.ArgumentDefinitionList) string {
	if len(args) == 0 {
		return ""
	}
	var all []string
	for _, arg := range args {
		all = append(all, arg.Name+": "+arg.Type.String())
	}
	return "(" + strings.Join(all, ", ") + ")"
}
