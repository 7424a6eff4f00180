package argcheck

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFaultsAtDepth checks what is said of arguments that are wrong below the parameters.
func TestFaultsAtDepth(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"items":{"type":"array","items":{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"mode":{"enum":["read","write","append"]}},"additionalProperties":false}},
		"loose":{"type":"object","required":["title"],"properties":{"title":{},"body":{}}},
		"what":{"anyOf":[{"type":"string"},{"type":"object","required":["id"],"properties":{"id":{"type":"integer"},"kind":{"const":"a"}}},
			{"type":"object","required":["kind"],"properties":{"kind":{"const":"b"},"colour":{"enum":["red","green"]}}}]},
		"ref":{"$ref":"#/$defs/a~1b"}},
		"$defs":{"a/b":{"type":"object","properties":{"repository":{}},"additionalProperties":false}}}`
	for _, test := range []struct{ args, want string }{
		{`{"items":[{"path":"x"},{"paht":"x"}]}`, `wrong arguments: items.1: missing property "path", got "paht": did you mean path? (parameters: items, loose, ref, what)`},
		{`{"items":[{"path":"x","moed":1}]}`, `items.0: unknown property "moed": did you mean mode?`},
		{`{"items":[{"path":"x","zzz":1}]}`, `items.0: unknown property "zzz", it has mode, path`},
		{`{"items":[{"path":"x","mode":"wirte"}]}`, `items.0.mode: got "wirte": did you mean "write"? It is one of read, write, append`},
		{`{"items":[{"path":"x","mode":"zzzzz"}]}`, `items.0.mode: got "zzzzz", want one of read, write, append`},
		{`{"loose":{"titel":1,"body":2}}`, `loose: missing property "title", got "titel": did you mean title?`},
		{`{"loose":{"body":2}}`, `loose: missing property 'title'`},
		{`{"what":{"kind":"b","colour":"gren"}}`, `wrong arguments: what.colour: got "gren": did you mean "green"? It is one of red, green (`},
		{`{"what":{"kind":"a","ID":7}}`, `wrong arguments: what: missing property "id", got "ID": did you mean id? (`},
		{`{"what":true}`, `what: got boolean, want string; what: got boolean, want object`},
		{`{"ref":{"repositry":1}}`, `ref: unknown property "repositry": did you mean repository?`},
	} {
		err := Compile(json.RawMessage(schema)).Check(json.RawMessage(test.args))
		if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 400 {
			t.Errorf("%s:\n got %v\nwant %s", test.args, err, test.want)
		}
	}
}

// TestFaultsOfRealTools does so with schemas that real servers have.
func TestFaultsOfRealTools(t *testing.T) {
	for _, test := range []struct{ server, tool, args, want string }{
		{"memory", "create_entities", `{"entities":[{"nam":"x","entityType":"y","observations":[]}]}`, `entities.0: missing property "name", got "nam": did you mean name?`},
		{"memory", "create_relations", `{"relations":[{"from":"a","to":"b","relationtype":"c"}]}`, `relations.0: missing property "relationType", got "relationtype": did you mean relationType?`},
		{"github", "push_files", `{"owner":"o","repo":"r","branch":"b","message":"m","files":[{"path":"p","contents":"c"}]}`, `files.0: missing property "content", got "contents": did you mean content?`},
		{"filesystem", "list_directory_with_sizes", `{"path":"x","sortBy":"sizes"}`, `sortBy: got "sizes": did you mean "size"?`},
	} {
		err := Compile(realSchema(t, test.server, test.tool)).Check(json.RawMessage(test.args))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s.%s(%s):\n got %v\nwant %s", test.server, test.tool, test.args, err, test.want)
		}
	}
}

func realSchema(t *testing.T, server, name string) json.RawMessage {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../shared/catalog", server+".json"))
	if err != nil {
		t.Skipf("no catalog: %v", err)
	}
	var list struct {
		Tools []struct {
			Name        string
			InputSchema json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	for _, row := range list.Tools {
		if row.Name == name {
			return row.InputSchema
		}
	}
	t.Fatalf("%s has no tool %s", server, name)
	return nil
}
