# Uses the functions that sallyport makes from the OpenAPI document of the HTTP API.
from sallyport import ToolError
from servers import api

health = api.get_health()
print("health", health["status"])

tools = api.list_tools(upstream="everything", limit=3)
print("tools", len(tools["tools"]), all(tool["id"].startswith("everything.") for tool in tools["tools"]))

found = api.search_tools(q="add two numbers", detail="names", limit=1)
print("search", found["found"].get("tools", [])[0]["id"])

called = api.call_tool(upstream="everything", tool="echo", arguments={"message": "hi"})
print("call", called.get("status"), (called.get("content") or [])[0])

ran = api.execute_code(code="print(6 * 7)", language="python")
print("execute", ran["output"])

one = api.get_execution(id=ran["id"])
listed = api.list_executions(limit=10)
print("record", one["status"], any(execution["id"] == ran["id"] for execution in listed["executions"]))

try:
    api.get_execution(id="no-such")
except ToolError as e:
    print("problem", "404" in str(e))
