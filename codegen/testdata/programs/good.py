"""Programs as they should be: a strict checker has nothing to say, and knows what comes back."""
import asyncio
from typing import List

import servers
from sallyport import Blob, Progress, ToolError, call, describe, emit, iterate, load, parallel, progress, save, search_tools, shape_of
from servers import shop
from servers.shop import create_issue, get_event, get_tree, list as list_all, list_issues, move, prompts, resources, search
from servers.shop.create_issue import Assignee

issue = create_issue("owner", "repo", "title")
number: int = issue["number"]
closed: bool = issue["state"] == "closed"
colors: List[str] = [label["color"] for label in issue["labels"] if "color" in label]
when = issue.get("closed_at")
print(when.upper() if when else "open", number, closed, colors)

create_issue(owner="o", repo="r", title="t", labels=["a", "b"], priority="high", assignee={"login": "x", "id": 1})
servers.shop.create_issue("o", "r", title="t")
shop.create_issue("o", "r", "t", body="b")

# A dict that is built in steps says what it is to be.
assignee: Assignee = {"login": "x"}
assignee["id"] = 7
create_issue("o", "r", "t", assignee=assignee)

page = list_issues("r", state="all", limit=5)
while True:
    for item in page["items"]:
        text: str = item.get("body") or item["title"]
        print(item["number"] + 1, text.strip())
    if "next_cursor" not in page:
        break
    page = list_issues("r")

event = get_event(1)["event"]
if event["type"] == "push":
    print(", ".join(event["commits"]))
else:
    print(event["text"].upper())

names: List[str] = []
todo = [get_tree()]
while todo:
    node = todo.pop()
    names.append(node["name"])
    todo.extend(node.get("children", []))

list_all("x", 1, call=True)
list_all(from_="x", user_id=1)
move("home")
move({"x": 1, "y": 2.5}, tags={"a": "b"})
print(search("x")["whatever"][0].name, call("shop.search", {"query": "x"}))

for one in parallel([lambda n=n: get_event(n) for n in range(3)]):
    print(one["event"]["type"])
first, second = parallel(lambda: list_issues("r"), lambda: get_tree())
print(first["items"][0]["title"], second["name"])
results = parallel([lambda n=n: get_event(n) for n in range(3)], limit=2, errors=True)
good = [r["event"]["type"] for r in results if not isinstance(r, Exception)]
many = [lambda: list_issues("r")] * 5
for found in parallel(*many):
    print(found["items"])
for thing in iterate(list_issues, "r", state="open"):
    print(thing["title"])
for thing in iterate(list_issues, "r", max_items=5):
    print(thing["title"])
print(search_tools("issues", detail="full", limit=3).strip(), describe(list_issues) + describe("shop.move") + describe(shop), shape_of(page), good)
save("x", page)
emit(load("x"), name="x.json")


def listener(p: Progress) -> None:
    print(p.progress, p.total or 0, p.message, p.tool)


with progress(listener):
    search("x")
with progress(lambda p: print(p.progress)):
    search("x")

try:
    search("x")
except ToolError as err:
    print(err.code, err.kind, err.upstream, err.tool, err.hint, err.message, err.retryable)


async def main() -> None:
    made = await create_issue.aio("o", "r", "t", priority="low")
    both = await asyncio.gather(list_issues.aio("r"), get_tree.aio())
    print(made["number"] + 1, both[0]["items"], both[1]["name"])
    issues, tree = await parallel.aio(lambda: list_issues.aio("r"), get_tree.aio())
    print(issues["items"], tree["name"], (await search_tools.aio("x")).strip())
    print([e["event"]["type"] for e in await parallel.aio([get_event.aio(n) for n in range(3)])])
    await emit.aio("done")
    async for thing in iterate(list_issues, repo="r"):
        print(thing)


asyncio.run(main())

read = resources.read("a:b")
if isinstance(read, Blob):
    print(read.data.hex(), read.mime)
print([r["uri"] + r.get("name", "") for r in resources.list()], prompts.get("p", topic=3)["messages"][0]["role"])
