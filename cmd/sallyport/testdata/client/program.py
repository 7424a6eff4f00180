import asyncio

from sallyport import Blob, ToolError, connect, load, parallel, progress, save, search_tools
from servers.everything import echo, get_sum, get_tiny_image, trigger_long_running_operation

print(get_sum(a=40, b=2))
print(parallel([lambda i=i: echo(str(i)) for i in range(3)]))
print(asyncio.run(echo.aio("later")))
print([part.mime for part in get_tiny_image() if isinstance(part, Blob)])
heard: list[float] = []
with progress(lambda p: heard.append(p.progress)):
    trigger_long_running_operation(duration=0.2, steps=2)
print(heard)
print("get_sum" in search_tools("sum of two numbers"))
save("kept", {"a": 1})
print(load("kept"))


def failing(what: str, message: str) -> None:
    try:
        echo(message)
    except ToolError as e:
        print(what, e.code, e.tool, e.hint.split(":")[0].split(",")[0])


failing("long", 3)  # type: ignore
connect(token="wrong")
failing("token", "x")
connect(url="http://127.0.0.1:1")
failing("gateway", "x")
