"""What a program can import as `sallyport`: calls of tools, and helpers around them.

Programs normally use the wrappers under `servers`, which use `call`. All traffic
leaves the sandbox over one websocket on a Unix socket: bridge.py.
"""

from __future__ import annotations

import contextvars
import importlib
import json
import os
import sys
import types

TYPE_CHECKING = False  # typing is not imported at run time
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from concurrent.futures import ThreadPoolExecutor
    from typing import Any, Protocol, TypeVar

    from typing_extensions import ParamSpec, Self

    from .bridge import Bridge
    from .pages import Pages

    P = ParamSpec("P")
    T = TypeVar("T")
    T_co = TypeVar("T_co", covariant=True)
    Frame = dict[str, Any]  # a message of the bridge

    class WithAio(Protocol[P, T_co]):
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...
        def aio(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T_co]: ...

    class Link(Protocol):
        """What calls go through: a Bridge, or the Gateway of client.py."""

        def call(self, tool: str, args: Frame) -> Frame: ...


__all__ = [
    "search_tools", "describe", "parallel", "shape_of", "emit", "save", "load", "progress", "iterate", "save_skill", "load_skill", "list_skills", "call", "async_call", "ToolError", "Blob",
]  # fmt: skip


class _Omit:
    def __repr__(self) -> str:
        return "..."


OMIT: Any = _Omit()


class ToolError(Exception):
    """A call that failed: `message`, `code`, `tool` ("upstream.name"), `upstream`, `hint`; `retryable`: the same call may be retried."""

    def __init__(self, message: str, code: str = "internal", tool: str = "", hint: str = "", retryable: bool = False) -> None:
        super().__init__(message)
        self.message, self.code, self.tool, self.hint, self.retryable = message, code, tool, hint, retryable
        self.upstream = tool.partition(".")[0]

    @property
    def kind(self) -> str:
        """The older name of code."""
        return self.code

    def __reduce__(self) -> tuple[type[ToolError], tuple[str, str, str, str, bool]]:
        return type(self), (self.message, self.code, self.tool, self.hint, self.retryable)

    def __repr__(self) -> str:
        more = "".join(f", {name}={getattr(self, name)!r}" for name in ("tool", "hint", "retryable") if getattr(self, name))
        return f"{type(self).__name__}({self.message!r}, code={self.code!r}{more})"


class Blob:
    """Binary content of a result: `data` (bytes), `mime`, and `uri` or `name` where there is one."""

    __slots__ = ("data", "mime", "uri", "name")

    def __init__(self, data: bytes, mime: str = "", uri: str = "", name: str = "") -> None:
        self.data, self.mime, self.uri, self.name = data, mime, uri, name

    def __repr__(self) -> str:
        return f"<Blob {self.mime or 'application/octet-stream'}, {len(self.data)} bytes>"

    def __len__(self) -> int:
        return len(self.data)


class Progress:
    """How far a call is: `progress` of `total` (None if it is not known), `message`, and the `tool`."""

    __slots__ = ("progress", "total", "message", "tool")

    def __init__(self, progress: float, total: float | None = None, message: str = "", tool: str = "") -> None:
        self.progress, self.total, self.message, self.tool = progress, total, message, tool

    def __repr__(self) -> str:
        of = "" if self.total is None else f"/{self.total}"
        return f"<Progress {self.tool} {self.progress}{of}{' ' + self.message if self.message else ''}>"


listener: contextvars.ContextVar[Callable[[Progress], object] | None] = contextvars.ContextVar("listener", default=None)


class progress:
    """Reports how far the calls inside are: with progress(lambda p: print(p.progress, p.total)): f(...)"""

    def __init__(self, listener: Callable[[Progress], object]) -> None:
        self._listener = listener
        self._tokens: list[contextvars.Token[Callable[[Progress], object] | None]] = []

    def __enter__(self) -> Self:
        self._tokens.append(listener.set(self._listener))
        return self

    def __exit__(self, *_: object) -> None:
        listener.reset(self._tokens.pop())


class Call:
    __slots__ = ("frame", "told", "tool", "listener", "bell", "asleep")

    def __init__(self, tool: str, listener: Callable[[Progress], object] | None) -> None:
        self.frame: Frame | bytes | None = None
        self.told: Frame | None = None
        self.bell: Any = None  # a lock, from when its thread sleeps
        self.asleep = False
        self.tool, self.listener = tool, listener

    def tell(self) -> None:
        """Passes the newest progress to the program's listener. An error in the listener does not fail the call."""
        told, self.told = self.told, None
        try:
            if self.listener and told is not None:
                self.listener(Progress(told.get("progress", 0), told.get("total"), told.get("message", ""), self.tool))
        except Exception as err:
            self.listener = None
            print(f"progress of {self.tool}: {type(err).__name__}: {err}", file=sys.stderr)


_bridge: Link | None = None
refused: list[tuple[str, str]] = []  # (tool, message) of the calls that did not leave the sandbox


def open_bridge(path: str | int) -> Bridge:
    from . import bridge

    global _bridge
    _bridge = opened = bridge.Bridge(path)
    return opened


def _link() -> Link:
    """Returns the transport for calls: the bridge, or outside of a sandbox the HTTP client of a gateway."""
    global _bridge
    if _bridge is None:
        from . import client

        _bridge = client.link()
    return _bridge


def native(value: Frame) -> Any:
    """Returns the value of an answer as a program sees it."""
    if "parts" in value:
        return [native(part) for part in value["parts"]]
    if "blob" in value:
        import binascii

        blob: Frame = value["blob"]
        return Blob(binascii.a2b_base64(blob.get("data") or ""), blob.get("mime", ""), blob.get("uri", ""), blob.get("name", ""))
    return value.get("json")


# Checkers do not take these apart, so that what has one of these types is not of unknown types inside.
_SETS: Any = (set, frozenset)
_LISTS: Any = (list, tuple)


def plain(value: Any) -> Any:
    """Converts values that are not JSON to JSON: bytes, Blob, sets, dates, dataclasses."""
    if isinstance(value, (bytes, bytearray, Blob)):
        import base64

        return base64.b64encode(value.data if isinstance(value, Blob) else value).decode()
    if isinstance(value, _SETS):
        return sorted(value, key=repr)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    if hasattr(value, "__fspath__"):
        path: os.PathLike[str] = value
        return os.fspath(path)
    raise TypeError(f"an argument of type {type(value).__name__} cannot be sent: use str, numbers, bool, None, list or dict")


_asking: contextvars.ContextVar[bool] = contextvars.ContextVar("asking", default=False)  # set while _asked determines the call of a wrapper


class _Asked(BaseException):
    """Carries the call of a wrapper to _asked."""

    def __init__(self, tool: str, arguments: dict[str, Any], spec: str | None) -> None:
        self.tool, self.arguments, self.spec = tool, arguments, spec


def call(tool: str, args: Mapping[str, Any] | None = None, spec: str | None = None) -> Any:
    """Calls the tool with id "upstream.name"; `args` by their names on the wire, `spec` as a wrapper has it."""
    given = {name: value for name, value in (args or {}).items() if value is not OMIT}
    if _asking.get():
        raise _Asked(tool, given, spec)
    try:
        given: Frame = json.loads(json.dumps(given, default=plain, allow_nan=False))
    except ValueError as err:
        why = "NaN and infinity cannot be sent" if "float" in str(err) else err
        raise TypeError(f"arguments of {tool} are not JSON: {why}") from None
    if spec:
        from .check import refusal, refuse

        wrong, signature = refuse(given, spec)
        if wrong:
            raise refusal(wrong, tool, signature)
    link = _link()
    frame = link.call(tool, given)
    unwrap: Callable[[Frame, str], Frame] | None = getattr(link, "unwrap", None)
    if spec and unwrap:  # outside of a sandbox
        frame = unwrap(frame, spec)
    return _answer(frame, tool)


def _answer(frame: Frame, tool: str) -> Any:
    if "error" in frame:
        error: Frame = frame["error"]
        raise ToolError(error["message"], error.get("kind", "internal"), tool, error.get("hint", ""), error.get("retryable", False))
    return native(frame["value"])


def async_call(tool: str, args: Mapping[str, Any] | None = None, spec: str | None = None) -> Coroutine[Any, Any, Any]:
    """Is `call` for asynchronous code."""
    return _later(tool.partition(".")[2], call, tool, args, spec)


def _later(name: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
    """Returns an awaitable that runs a blocking function."""
    from .pending import Pending

    return Pending(lambda: _aside(function, *args, **kwargs), name)


def bound(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, dict[str, Any], str] | None:
    """Returns the tool, the arguments and the spec of a call that does not fit the parameters of its wrapper as it is."""
    from . import check

    return check.bound(function, args, kwargs)


async def _aside(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs a blocking function in one of 16 threads. It must return without help from other coroutines."""
    import asyncio

    run = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(_executor(), lambda: run(function, *args, **kwargs))


_threads: ThreadPoolExecutor | None = None


def _executor() -> ThreadPoolExecutor:
    global _threads
    if _threads is None:
        from concurrent.futures import ThreadPoolExecutor

        _threads = ThreadPoolExecutor(16)
    return _threads


def _with_aio(function: Callable[P, T]) -> WithAio[P, T]:
    """Adds an asynchronous variant to a function: await function.aio(...)."""

    def aio(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        return _later(function.__name__, function, *args, **kwargs)

    aio.__doc__ = function.__doc__
    both: Any = function
    both.aio = aio
    return both


@_with_aio
def search_tools(query: str, detail: str | None = None, upstream: str | None = None, limit: int | None = None) -> str:
    """Finds tools by words. `detail` is "names", "summary", "signature" or "full"; returns text to print."""
    asked = {"query": query, "detail": detail, "upstream": upstream, "limit": limit, "language": "python"}
    return call("sallyport.search_tools", {name: value for name, value in asked.items() if value is not None})


@_with_aio
def describe(tool: object) -> str:
    """Describes a tool: describe(create_issue) or describe("github.create_issue"). Returns text to print."""
    from . import naming

    return call("sallyport.describe", {"tool": naming.id_of(tool), "language": "python"})


@_with_aio
def save_skill(
    name: str,
    code: str | None = None,
    description: str | None = None,
    language: str | None = None,
    params: Mapping[str, Any] | None = None,
    from_execution: str | None = None,
    tests: str | None = None,
    scope: str | None = None,
    groups: list[str] | None = None,
) -> str:
    """Saves code as a skill, for this and later programs: from skills.NAME import function."""
    asked: dict[str, Any] = {"name": name, "code": code, "description": description, "language": language or (code and "python"), "params": params}
    asked.update({"from_execution": from_execution, "tests": tests, "scope": scope, "groups": groups})
    return call("sallyport.save_skill", {name: value for name, value in asked.items() if value is not None})


@_with_aio
def load_skill(name: str, version: int | None = None) -> str:
    """Returns the text of a skill: what it is for, how to import it, its code."""
    return call("sallyport.load_skill", {"name": name} if version is None else {"name": name, "version": version})


@_with_aio
def list_skills(query: str | None = None) -> str:
    """Lists the skills, or those that match the query, one per line."""
    return call("sallyport.list_skills", {} if query is None else {"query": query})


def parallel(*functions: Any, limit: int = 16, errors: bool = False) -> list[Any]:
    """Runs functions without arguments at once, at most `limit` of them, and returns their results in order.

    parallel(lambda: a(1), lambda: b(2)) or parallel([lambda x=x: f(x) for x in xs])
    After an error it starts no further function, waits for the running ones, and raises the error, of several
    the first in order. With errors=True it runs all, and an exception takes the place of its result.
    In asynchronous code: await parallel.aio(...), which accepts awaitables too.
    """
    from . import together

    return together.run(functions, limit, errors)


async def _parallel_aio(*functions: Any, limit: int = 16, errors: bool = False) -> list[Any]:
    """Is `parallel` for asynchronous code; takes functions, asynchronous functions and awaitables."""
    from . import together

    return await together.run_async(functions, limit, errors)


setattr(parallel, "aio", _parallel_aio)


def iterate(wrapper: Callable[..., Any], *args: Any, max_items: int | None = None, **kwargs: Any) -> Pages:
    """Iterates over the items of all pages: for issue in iterate(list_issues, owner="a", repo="b"): ..., or async for.

    The further arguments are the wrapper's own. Pages are requested in order, as needed.
    """
    from . import pages

    if not callable(wrapper):
        raise TypeError(f"iterate takes a wrapper and its arguments: iterate(list_issues, owner=...), not a {type(wrapper).__name__}")
    return pages.Pages(*_asked(wrapper, args, kwargs), max_items)


def _asked(wrapper: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, dict[str, Any], str | None]:
    """Returns (tool, args, spec) of the call that a wrapper would make, without making it."""
    token = _asking.set(True)
    try:
        result = wrapper(*args, **kwargs)
    except _Asked as asked:
        return asked.tool, asked.arguments, asked.spec
    finally:
        _asking.reset(token)
    if hasattr(result, "close"):
        result.close()  # an unused coroutine
    raise TypeError("iterate takes the wrapper itself: iterate(list_issues, owner=...), for asynchronous code too")


def shape_of(value: object) -> str:
    """Returns the type of a value as text, without any value in it: {id: int, tags: list[str], note?: str}"""
    from . import shapes

    return shapes.shape_of(value)


@_with_aio
def emit(thing: Any, *, name: str | None = None, mime: str | None = None) -> None:
    """Sends something to the client, besides printed output: an image, a file, a table, a text.

    `thing` is bytes, a Blob, a path, a figure (savefig), a picture (save), rows (a list of dicts or lists, a data frame) or a str.
    If a list contains a Blob, each item is sent by itself.
    """
    if isinstance(thing, _LISTS) and any(isinstance(item, Blob) for item in thing):
        for item in thing:
            emit(item, name=name if isinstance(item, Blob) else None, mime=mime if isinstance(item, Blob) else None)
        return
    from . import media

    frame: Frame = {"type": "emit", "id": 0, "content": media.content(thing, name, mime)}
    ask: Callable[[Frame, str], Frame] | None = getattr(_bridge, "ask", None)
    if not ask:
        raise ToolError("emit works only inside execute_code: no client to send to", "invalid", "sallyport.emit")
    _answer(ask(frame, "sallyport.emit"), "sallyport.emit")


def save(name: str, value: object) -> None:
    """Stores a value in the workspace for load(name): bytes and Blob unchanged, all others as JSON."""
    from . import saved

    saved.save(name, value)


def load(name: str) -> Any:
    """Returns the value that save(name, value) stored, in either language."""
    from . import saved

    return saved.load(name)


class _Package(types.ModuleType):
    """A package of wrappers that loads each on first use."""

    def __setattr__(self, name: str, value: Any) -> None:
        # The import system binds a submodule to its package under the tool's own name: bind the function instead.
        if isinstance(value, types.ModuleType) and name in self.__dict__.get("__tools__", ()):
            value = getattr(value, name, value)  # resources and prompts are modules
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        tools: dict[str, str] = self.__dict__.get("__tools__", {})
        if name in tools:
            importlib.import_module(f"{self.__name__}.{tools[name]}")
            return self.__dict__[name]
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("resources", "prompts"):
            raise ImportError(f"{self.__name__} offers no {name}")
        import difflib

        from .check import same_name

        near = [tool for tool in tools if same_name(tool, name)]
        others = [] if near else [up for up in os.listdir("/servers") if os.path.exists(f"/servers/{up}/{name}.py")]
        near = near or difflib.get_close_matches(name, tools, 1, 0.5)
        told = f"it is in servers.{others[0]}" if others else f"did you mean {near[0]}? search_tools finds others" if near else "find it with search_tools"
        raise ImportError(f"{self.__name__} has no tool {name}; {told}")

    def __dir__(self) -> list[str]:
        return sorted(self.__dict__.get("__tools__", ()))


def package(name: str, tools: Mapping[str, str]) -> None:
    """Makes the package `name` lazy: tools maps what it exports to its submodules."""
    module = sys.modules[name]
    module.__class__ = _Package
    types.ModuleType.__setattr__(module, "__tools__", dict(tools))
