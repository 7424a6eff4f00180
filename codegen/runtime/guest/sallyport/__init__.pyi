# What type checkers and editors know of the module that programs and wrappers import; __init__.py is what runs.
from typing import Any, Callable, Iterable, Mapping, TypeVar, overload

_T = TypeVar("_T")
_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_D = TypeVar("_D")

__all__ = ["call", "async_call", "parallel", "progress", "ToolError", "Blob"]

# The default of a parameter that is not sent. Wrappers give it to parameters of every type.
OMIT: Any

class ToolError(Exception):
    """A tool call that failed: `kind` says how, `tool` which, `hint` what would be right."""

    message: str
    kind: str
    tool: str
    hint: str
    def __init__(self, message: str, kind: str = "internal", tool: str = "", hint: str = "") -> None: ...

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
    """Hears how far the calls inside are: with progress(lambda p: print(p.progress, p.total)): f(...)"""

    def __init__(self, listener: Callable[[Progress], object]) -> None: ...
    def __enter__(self) -> progress: ...
    def __exit__(self, *_: object) -> None: ...

def call(tool: str, args: Mapping[str, Any] | None = None, spec: str | None = None) -> Any:
    """Calls the tool with id "upstream.name"; `args` by their names on the wire."""

async def async_call(tool: str, args: Mapping[str, Any] | None = None, spec: str | None = None) -> Any:
    """Is `call` for asynchronous code."""

# Two to four functions are a tuple here, so that "a, b = parallel(f, g)" knows each type; it is a list that comes.
@overload
def parallel(a: Callable[[], _A], b: Callable[[], _B], /) -> tuple[_A, _B]:  # pyright: ignore[reportOverlappingOverload]
    """Runs functions without arguments at once and returns their results in order.

    parallel(lambda: a(1), lambda: b(2)) or parallel([lambda x=x: f(x) for x in xs])
    """

@overload
def parallel(a: Callable[[], _A], b: Callable[[], _B], c: Callable[[], _C], /) -> tuple[_A, _B, _C]: ...
@overload
def parallel(
    a: Callable[[], _A], b: Callable[[], _B], c: Callable[[], _C], d: Callable[[], _D], /
) -> tuple[_A, _B, _C, _D]: ...
@overload
def parallel(*thunks: Callable[[], _T]) -> list[_T]: ...
@overload
def parallel(thunks: Iterable[Callable[[], _T]], /) -> list[_T]: ...
def package(name: str, tools: Mapping[str, str]) -> None:
    """Makes the package `name` lazy: tools maps what it exports to its submodules."""
