package main_test

import (
	"testing"

	"sallyport/internal/testutil/graphqlserver"
)

// TestGraphQLUpstream: a GraphQL API is added by its URL, and programs in both languages call its queries and mutations.
func TestGraphQLUpstream(t *testing.T) {
	t.Parallel()
	s := newAPISite(t, graphqlserver.Key)
	url := graphqlserver.Start(t) + "/graphql"
	s.run(t, "added shop", "upstreams", "add", "shop", "--graphql", url, "--header", "X-Key=${SHOP_KEY}")
	s.run(t, "shop is in", "add", url, "--header", "X-Key=${SHOP_KEY}", "--yes")
	s.run(t, "added second to upstreams.yaml: 13 tools", "add", url, "--name", "second", "--header", "X-Key=${SHOP_KEY}", "--yes")
	s.run(t, "removed second", "upstreams", "remove", "second")
	s.run(t, "13 tools", "upstreams", "test", "shop")
	s.run(t, "graphql", "upstreams", "list")
	s.run(t, "issues", "search", "issues of the shop")
	s.exec(t, "one ann | ['one', 'two'] | author: User!", "a.py", `
from servers.shop import issue, issues, describe_type
one = issue(id="1")
titles = [e["node"]["title"] for e in issues(first=2, select="edges { node { title } }")["edges"]]
print(one["title"], one["author"]["login"], "|", titles, "|", [l.strip() for l in describe_type(name="Issue").splitlines() if "author" in l][0])
`)
	s.exec(t, "9 new CLOSED hello", "b.ts", `
import { createIssue, issue, setPoints } from "./servers/shop";
const made = await createIssue({ input: { title: "new" } });
const found = await issue({ id: "2", select: "{ comments { nodes { body } } }" });
await setPoints({ id: "1", points: null });
console.log(made!.issue!.id, made!.issue!.title, made!.issue!.state === "OPEN" ? "CLOSED" : "?", (found as any).comments.nodes[0].body);
`)
	s.exec(t, "Issue has no field \"titel\"; it has id, title", "c.py", `
from servers.shop import issue
try:
    issue(id="1", select="titel")
except Exception as e:
    print(e)
`)
}
