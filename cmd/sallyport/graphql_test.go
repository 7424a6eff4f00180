package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/graphqlserver"
)

// TestGraphQLUpstream: a GraphQL API is added by its URL, and programs in both languages call its queries and mutations.
func TestGraphQLUpstream(t *testing.T) {
	t.Parallel()
	dir := testutil.ShortDir(t)
	settings := filepath.Join(dir, "upstreams.yaml")
	writeText(t, settings, "upstreams: {}\nsandbox: {runsc: "+testutil.Runsc(t)+", pool: {max: 0}}\n")
	run := func(want string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sallyport", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR="+dir, "SHOP_KEY="+graphqlserver.Key)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, want %s in\n%s", args, err, want, out)
		}
	}
	program := func(name, text string) string {
		path := filepath.Join(dir, name)
		writeText(t, path, text)
		return path
	}
	url := graphqlserver.Start(t) + "/graphql"
	run("added shop", "upstreams", "add", "shop", "--graphql", url, "--header", "X-Key=${SHOP_KEY}")
	run("shop is in", "add", url, "--header", "X-Key=${SHOP_KEY}", "--yes")
	run("added second to upstreams.yaml: 13 tools", "add", url, "--name", "second", "--header", "X-Key=${SHOP_KEY}", "--yes")
	run("removed second", "upstreams", "remove", "second")
	run("13 tools", "upstreams", "test", "shop")
	run("graphql", "upstreams", "list")
	run("issues", "search", "issues of the shop")
	run("one ann | ['one', 'two'] | author: User!", "exec", program("a.py", `
from servers.shop import issue, issues, describe_type
one = issue(id="1")
titles = [e["node"]["title"] for e in issues(first=2, select="edges { node { title } }")["edges"]]
print(one["title"], one["author"]["login"], "|", titles, "|", [l.strip() for l in describe_type(name="Issue").splitlines() if "author" in l][0])
`))
	run("9 new CLOSED hello", "exec", program("b.ts", `
import { createIssue, issue, setPoints } from "./servers/shop";
const made = await createIssue({ input: { title: "new" } });
const found = await issue({ id: "2", select: "{ comments { nodes { body } } }" });
await setPoints({ id: "1", points: null });
console.log(made!.issue!.id, made!.issue!.title, made!.issue!.state === "OPEN" ? "CLOSED" : "?", (found as any).comments.nodes[0].body);
`))
	run("Issue has no field \"titel\"; it has id, title", "exec", program("c.py", `
from servers.shop import issue
try:
    issue(id="1", select="titel")
except Exception as e:
    print(e)
`))
}
