// Programs as they should be: a strict checker has nothing to say, and knows what comes back.
import { call, parallel, progress, ToolError, Blob } from "sallyport";
import * as servers from "servers/index";
import { create_issue, get_event, get_tree, list, list_issues, move, search, resources, prompts } from "servers/shop";
import type { Assignee } from "servers/shop/create_issue";

const issue = await create_issue({ owner: "o", repo: "r", title: "t" });
const n: number = issue.number;
const closed: boolean = issue.state === "closed";
const colors: string[] = issue.labels.flatMap((l) => l.color ?? []);
console.log(n, closed, colors, issue.closed_at?.toUpperCase() ?? "open");

await create_issue({ owner: "o", repo: "r", title: "t", labels: ["a"], priority: "high", assignee: { login: "x", id: 1 } });
await servers.shop.create_issue({ owner: "o", repo: "r", title: "t" });

const assignee: Assignee = { login: "x" };
assignee.id = 7;
await create_issue({ owner: "o", repo: "r", title: "t", assignee });

let page = await list_issues({ repo: "r", state: "all", limit: 5 });
for (;;) {
  for (const item of page.items) console.log(item.number + 1, (item.body ?? item.title).trim());
  if (page.next_cursor === undefined) break;
  page = await list_issues({ repo: "r" });
}

const { event } = await get_event({ id: 1 });
if (event.type === "push") console.log(event.commits.join(", "));
else console.log(event.text.toUpperCase());

const names: string[] = [];
const todo = [await get_tree()];
for (let node = todo.pop(); node; node = todo.pop()) {
  names.push(node.name);
  todo.push(...(node.children ?? []));
}

await list({ from: "x", "user-id": 1, call: true });
await move({ to: "home" });
await move({ to: { x: 1, y: 2.5 }, tags: { a: "b" } });
console.log((await search({ query: "x" })).whatever[0].name, await call("shop.search", { query: "x" }));

for (const one of await parallel([1, 2].map((id) => () => get_event({ id })))) console.log(one.event.type);
await progress((p) => console.log(p.progress, p.total, p.message, p.tool), () => search({ query: "x" }));
try {
  await search({ query: "x" });
} catch (err) {
  if (err instanceof ToolError) console.log(err.kind, err.tool, err.hint, err.message);
}

const read = await resources.read("a:b");
if (read instanceof Blob) console.log(read.data.length, read.mime);
console.log((await resources.list()).map((r) => r.uri + (r.name ?? "")), (await prompts.get("p", { topic: 3 })).messages[0]?.role);
