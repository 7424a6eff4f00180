// Programs as they should not be: every line that ends in "wrong" must be found, and no other.
import * as nothing from "servers/nothing"; // wrong
import { creat_issue } from "servers/shop"; // wrong
import * as shop from "servers/shop";
import { create_issue, get_event, get_tree, list, list_issues, move } from "servers/shop";

const some = { owner: "o", repo: "r" };
console.log(nothing, creat_issue);
await create_issue({ owner: "o", repo: "r" }); // wrong
await create_issue({ owner: "o", repo: "r", titel: "t" }); // wrong
await create_issue({ ...some, title: 5 }); // wrong
await create_issue({ ...some, title: "t", priority: "urgent" }); // wrong
await create_issue({ ...some, title: "t", labels: "a" }); // wrong
await create_issue({ ...some, title: "t", labels: [1] }); // wrong
await create_issue({ ...some, title: "t", body: null }); // wrong
await create_issue({ ...some, title: "t", body: undefined }); // wrong
await create_issue({ ...some, title: "t", assignee: { id: 1 } }); // wrong
await create_issue({ ...some, title: "t", assignee: { login: "x", mail: "y" } }); // wrong
await create_issue("o", "r", "t"); // wrong
await create_issue(); // wrong
await shop.create_isue({ ...some, title: "t" }); // wrong
await list_issues({ repo: "r", limit: "5" }); // wrong
await list({ from: "x" }); // wrong
await move({ to: { x: 1 } }); // wrong
await move({ to: "a", tags: { a: 1 } }); // wrong

const issue = await create_issue({ ...some, title: "t" });
console.log(issue.nummer); // wrong
console.log(issue.title * 2); // wrong
console.log(issue.closed_at.length); // wrong
if (issue.state === "done") console.log(1); // wrong
for (const item of await list_issues({ repo: "r" })) console.log(item); // wrong
console.log((await get_event({ id: 1 })).event.commits); // wrong
console.log((await get_tree({})).children[0]); // wrong
console.log(create_issue({ ...some, title: "t" }).number); // wrong
