# Type stub of the module that programs and wrappers import, for type checkers and editors. __init__.py is the implementation.
from contextvars import ContextVar
from types import ModuleType
from typing import Any, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Literal, Mapping, Protocol, TypeVar, Union, overload

from typing_extensions import ParamSpec

_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_D = TypeVar("_D")
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
_P = ParamSpec("_P")

__all__ = [
    "search_tools", "describe", "parallel", "shape_of", "emit", "save", "load", "progress", "iterate", "save_skill", "load_skill", "list_skills", "call", "async_call", "ToolError", "Blob",
]  # fmt: skip

# The default of parameters that are not sent. Wrappers use it for parameters of every type.
OMIT: Any

class ToolError(Exception):
    """A call that failed: `message`, `code`, `tool` ("upstream.name"), `upstream`, `hint`; `retryable`: the same call may be retried."""

    message: str
    code: str
    tool: str
    upstream: str
    hint: str
    retryable: bool
    @property
    def kind(self) -> str:
        """The older name of code."""

    def __init__(self, message: str, code: str = "internal", tool: str = "", hint: str = "", retryable: bool = False) -> None: ...

class Blob:
    """Binary content of a result: `data` (bytes), `mime`, and `uri` or `name` where there is one."""

    data: bytes
    mime: str
    uri: str
    name: str
    def __init__(self, data: bytes, mime: str = "", uri: str = "", name: str = "") -> None: ...
    def __len__(self) -> int: ...

class Progress:
    """How far a call is: `progress` of `total` (None if it is not known), `message`, and the `tool`."""

    progress: float
    total: float | None
    message: str
    tool: str
    def __init__(self, progress: float, total: float | None = None, message: str = "", tool: str = "") -> None: ...

class progress:
    """Reports how far the calls inside are: with progress(lambda p: print(p.progress, p.total)): f(...)"""

    def __init__(self, listener: Callable[[Progress], object]) -> None: ...
    def __enter__(self) -> progress: ...
    def __exit__(self, *_: object) -> None: ...

class _WithAio(Protocol[_P, _T_co]):
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T_co: ...
    async def aio(self, *args: _P.args, **kwargs: _P.kwargs) -> _T_co: ...

def _with_aio(function: Callable[_P, _T]) -> _WithAio[_P, _T]: ...
def call(tool: str, args: Mapping[str, Any] | None = None, spec: str | None = None) -> Any:
    """Calls the tool with id "upstream.name"; `args` by their names on the wire, `spec` as a wrapper has it."""

async def async_call(tool: str, args: Mapping[str, Any] | None = None, spec: str | None = None) -> Any:
    """Is `call` for asynchronous code."""

def bound(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, dict[str, Any], str] | None:
    """Returns the tool, the arguments and the spec of a call that does not fit the parameters of its wrapper as it is."""

@_with_aio
def search_tools(
    query: str,
    detail: Literal["names", "summary", "signature", "full"] | None = None,
    upstream: str | None = None,
    limit: int | None = None,
) -> str:
    """Finds tools by words. `detail` is "names", "summary", "signature" or "full"; returns text to print."""

@_with_aio
def describe(tool: str | Callable[..., Any] | ModuleType) -> str:
    """Describes a tool: describe(create_issue) or describe("github.create_issue"). Returns text to print."""

@_with_aio
def save_skill(
    name: str,
    code: str | None = None,
    description: str | None = None,
    language: Literal["python", "typescript"] | None = None,
    params: Mapping[str, Any] | None = None,
    from_execution: str | None = None,
    tests: str | None = None,
    scope: Literal["private", "shared"] | None = None,
    groups: list[str] | None = None,
) -> str:
    """Saves code as a skill, for this and later programs: from skills.NAME import function."""

@_with_aio
def load_skill(name: str, version: int | None = None) -> str:
    """Returns the text of a skill: what it is for, how to import it, its code."""

@_with_aio
def list_skills(query: str | None = None) -> str:
    """Lists the skills, or those that match the query, one per line."""

_Task = Union[Callable[[], Awaitable[_T]], Awaitable[_T]]
_Any = Union[Callable[[], Any], Awaitable[Any]]

# For two to four functions the declared result is a tuple, so that "a, b = parallel(f, g)" has precise types; at run time it is a list.
class _Parallel(Protocol):
    @overload
    def __call__(self, a: Callable[[], _A], b: Callable[[], _B], /, *, limit: int = 16) -> tuple[_A, _B]: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def __call__(self, a: Callable[[], _A], b: Callable[[], _B], c: Callable[[], _C], /, *, limit: int = 16) -> tuple[_A, _B, _C]: ...
    @overload
    def __call__(
        self, a: Callable[[], _A], b: Callable[[], _B], c: Callable[[], _C], d: Callable[[], _D], /, *, limit: int = 16
    ) -> tuple[_A, _B, _C, _D]: ...
    @overload
    def __call__(self, *functions: Callable[[], _T], limit: int = 16) -> list[_T]: ...
    @overload
    def __call__(self, *functions: Callable[[], _T], limit: int = 16, errors: bool) -> list[_T | Exception]: ...
    @overload
    def __call__(self, functions: Iterable[Callable[[], _T]], /, *, limit: int = 16) -> list[_T]: ...
    @overload
    def __call__(self, functions: Iterable[Callable[[], _T]], /, *, limit: int = 16, errors: bool) -> list[_T | Exception]:
        """Runs functions without arguments at once, at most `limit` of them, and returns their results in order.

        parallel(lambda: a(1), lambda: b(2)) or parallel([lambda x=x: f(x) for x in xs])
        After an error it starts no further function, waits for the running ones, and raises the error, of several
        the first in order. With errors=True it runs all, and an exception takes the place of its result.
        In asynchronous code: await parallel.aio(...), which accepts awaitables too.
        """

    @overload
    async def aio(self, a: _Task[_A], b: _Task[_B], /, *, limit: int = 16) -> tuple[_A, _B]: ...
    @overload
    async def aio(self, a: _Task[_A], b: _Task[_B], c: _Task[_C], /, *, limit: int = 16) -> tuple[_A, _B, _C]: ...
    @overload
    async def aio(self, a: _Task[_A], b: _Task[_B], c: _Task[_C], d: _Task[_D], /, *, limit: int = 16) -> tuple[_A, _B, _C, _D]: ...
    @overload
    async def aio(self, *functions: _Task[_T], limit: int = 16) -> list[_T]: ...
    @overload
    async def aio(self, *functions: _Task[_T], limit: int = 16, errors: bool) -> list[_T | Exception]: ...
    @overload
    async def aio(self, functions: Iterable[_Task[_T]], /, *, limit: int = 16) -> list[_T]: ...
    @overload
    async def aio(self, functions: Iterable[_Task[_T]], /, *, limit: int = 16, errors: bool) -> list[_T | Exception]: ...
    @overload
    async def aio(self, *functions: _Any | Iterable[_Any], limit: int = 16, errors: bool = False) -> list[Any]:
        """Is `parallel` for asynchronous code; takes functions, asynchronous functions and awaitables."""

parallel: _Parallel

class _Pages(Protocol[_T_co]):
    def __iter__(self) -> Iterator[_T_co]: ...
    def __aiter__(self) -> AsyncIterator[_T_co]: ...

@overload
def iterate(wrapper: Callable[_P, list[_T]], *args: _P.args, **kwargs: _P.kwargs) -> _Pages[_T]: ...
@overload
def iterate(wrapper: Callable[_P, Any], *args: _P.args, **kwargs: _P.kwargs) -> _Pages[Any]: ...
@overload
def iterate(wrapper: Callable[..., list[_T]], *args: Any, max_items: int | None, **kwargs: Any) -> _Pages[_T]: ...
@overload
def iterate(wrapper: Callable[..., Any], *args: Any, max_items: int | None, **kwargs: Any) -> _Pages[Any]:
    """Iterates over the items of all pages: for issue in iterate(list_issues, owner="a", repo="b"): ..., or async for.

    The further arguments are the wrapper's own. Pages are requested in order, as needed.
    """

def shape_of(value: object) -> str:
    """Returns the type of a value as text, without any value in it: {id: int, tags: list[str], note?: str}"""

@_with_aio
def emit(thing: object, *, name: str | None = None, mime: str | None = None) -> None:
    """Sends something to the client, besides printed output: an image, a file, a table, a text.

    `thing` is bytes, a Blob, a path, a figure (savefig), a picture (save), rows (a list of dicts or lists, a data frame) or a str.
    """

def save(name: str, value: object) -> None:
    """Stores a value in the workspace for load(name): bytes and Blob unchanged, all others as JSON."""

def load(name: str) -> Any:
    """Returns the value that save(name, value) stored, in either language."""

# For the modules of this package.
_Frame = dict[str, Any]
refused: list[tuple[str, str]]
listener: ContextVar[Callable[[Progress], object] | None]

class Call:
    """A call that waits for its answer."""

    frame: _Frame | bytes | None
    told: _Frame | None
    bell: Any
    asleep: bool
    tool: str
    listener: Callable[[Progress], object] | None
    def __init__(self, tool: str, listener: Callable[[Progress], object] | None) -> None: ...
    def tell(self) -> None: ...

def plain(value: Any) -> Any:
    """Converts values that are not JSON to JSON: bytes, Blob, sets, dates, dataclasses."""

def package(name: str, tools: Mapping[str, str]) -> None:
    """Makes the package `name` lazy: tools maps what it exports to its submodules."""
