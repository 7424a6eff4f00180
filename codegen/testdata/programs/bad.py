"""Programs as they should not be: every line that ends in "wrong" must be found, and no other."""
from sallyport import ToolError, emit, iterate, parallel, search_tools
from sallyport import serach_tools  # wrong
from servers import nothing, shop  # wrong
from servers.shop import creat_issue  # wrong
from servers.shop import create_issue, get_event, get_tree, list as list_all, list_issues, move

create_issue("o", "r")  # wrong
create_issue("o", "r", titel="t")  # wrong
create_issue("o", "r", 5)  # wrong
create_issue("o", "r", "t", priority="urgent")  # wrong
create_issue("o", "r", "t", labels="a")  # wrong
create_issue("o", "r", "t", labels=[1])  # wrong
create_issue("o", "r", "t", body=None)  # wrong
create_issue("o", "r", "t", "b")  # wrong
create_issue("o", "r", "t", assignee={"id": 1})  # wrong
create_issue("o", "r", "t", assignee={"login": "x", "mail": "y"})  # wrong
create_issue({"owner": "o", "repo": "r", "title": "t"})  # wrong
create_issue.aoi("o", "r", "t")  # wrong
shop.create_isue("o", "r", "t")  # wrong
list_issues("r", limit="5")  # wrong
list_all("x")  # wrong
move({"x": 1})  # wrong
move("a", tags={"a": 1})  # wrong

issue = create_issue("o", "r", "t")
print(issue["nummer"])  # wrong
print(issue["title"] + 1)  # wrong
print(issue.number)  # wrong
print(issue["closed_at"].upper())  # wrong
if issue["state"] == "done":  # wrong
    print(1)
for item in list_issues("r"):
    print(item["title"])  # wrong
print(get_event(1)["event"]["commits"])  # wrong
print(get_tree()["children"][0]["nam"])  # wrong
iterate(list_issues, "r", state="opne")  # wrong
iterate(list_issues("r"))  # wrong
parallel(list_issues("r"), get_tree())  # wrong
first, second = parallel(lambda: list_issues("r"), lambda: get_tree())
print(second["items"])  # wrong
search_tools("x", detail="all")  # wrong
emit("x", nmae="y")  # wrong
try:
    get_tree()
except ToolError as err:
    print(err.status)  # wrong


async def main() -> None:
    await create_issue.aio("o", "r")  # wrong
    print(create_issue.aio("o", "r", "t")["number"])  # wrong
    made = await create_issue.aio("o", "r", "t")
    print(made["nummer"])  # wrong
    print(search_tools.aio("x").strip())  # wrong
    await parallel.aio(list_issues("r"), get_tree())  # wrong
