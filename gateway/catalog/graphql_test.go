package catalog_test

import (
	"os"
	"path/filepath"
	"testing"

	"sallyport/codegen"
	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

const pythonGraphQL = `from servers import github

repo = github.repository(name="r", owner="o")
if repo is not None:
    branch: str = (repo.get("defaultBranchRef") or {}).get("name", "")
    forks: str = repo.get("forkCount", 0)  # wrong
repo.get("name")  # wrong
made = github.createIssue({"repositoryId": "R_1", "title": "t", "labelIds": ["L_1"]}, select="{ issue { number } }")
number: int = ((made or {}).get("issue") or {}).get("number", 0)
github.createIssue({"title": "t"})  # wrong
github.addReaction({"subjectId": "I_1", "content": "SHRUG"})  # wrong
shown: str = github.describe_type("Repository")
`

const typeScriptGraphQL = `import { github } from "./servers/index";

const repo = await github.repository({ name: "r", owner: "o" });
export const branch: string | undefined = repo?.defaultBranchRef?.name;
export const forks: string | undefined = repo?.forkCount; // wrong
export const name: string | undefined = repo.name; // wrong
const made = await github.createIssue({ input: { repositoryId: "R_1", title: "t" }, select: "{ issue { number } }" });
export const number: number | undefined = made?.issue?.number;
await github.createIssue({ input: { title: "t" } }); // wrong
await github.addReaction({ input: { subjectId: "I_1", content: "SHRUG" } }); // wrong
`

// usedGraphQL are the operations that the programs above use.
var usedGraphQL = map[string]bool{"repository": true, "createIssue": true, "addReaction": true, "describe_type": true}

// The wrappers of the queries and mutations of a real GraphQL API pass pyright and tsc, as strict as they can be, and have the types of
// its schema.
func TestGraphQLTypeChecks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "github.graphql")
	if err := os.WriteFile(path, testutil.Gunzip(t, "../upstream/graphql/testdata/github.graphql.gz"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := upstream.New(upstream.Settings{ID: "github", GraphQL: path, URL: "https://api.example/graphql"}, nil)
	defer s.Close()
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	var some []tool.Tool
	for i, one := range s.Tools() {
		if i%20 == 0 || usedGraphQL[one.ID.Name] || allOperations {
			some = append(some, one)
		}
	}
	typeCheck(t, []codegen.Upstream{{ID: "github", Tools: some}}, pythonGraphQL, typeScriptGraphQL)
}
