"""What NAME.aio(...) returns: an awaitable that cannot be taken for the result of the call."""

from __future__ import annotations

from collections.abc import Coroutine

TYPE_CHECKING = False  # typing is not imported at run time
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any, NoReturn

    Base = Coroutine[Any, Any, Any]
else:
    Base = Coroutine

unawaited: dict[int, str] = {}  # id of a call that nothing has awaited -> name of its tool


def forget() -> None:
    unawaited.clear()


class Pending(Base):
    """A call that is made when it is awaited. Every other use is an error."""

    __slots__ = ("_start", "_name", "_coroutine", "__weakref__")

    def __init__(self, start: Callable[[], Coroutine[Any, Any, Any]], name: str) -> None:
        self._start, self._name = start, name
        self._coroutine: Coroutine[Any, Any, Any] | None = None
        unawaited[id(self)] = name

    def _begun(self) -> Coroutine[Any, Any, Any]:
        if self._coroutine is None:
            unawaited.pop(id(self), None)
            self._coroutine = self._start()
        return self._coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._begun().__await__()

    def send(self, value: Any) -> Any:
        return self._begun().send(value)

    def throw(self, *error: Any) -> Any:
        return self._begun().throw(*error)

    def close(self) -> None:
        unawaited.pop(id(self), None)
        if self._coroutine is not None:
            self._coroutine.close()

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"no {name}") if name.startswith(("__", "cr_", "gi_")) else self._misuse(AttributeError, "." + name)

    def _misuse(self, kind: type[Exception] = TypeError, member: str = "") -> Exception:
        """Returns the error of a use that is no await."""
        unawaited.pop(id(self), None)
        call = self._name + "(...)"
        error = kind(f"{self._name}.aio(...){member}: the call was not awaited")
        setattr(error, "hint", f"write (await {self._name}.aio(...)){member}, or {call}{member}")
        return error

    __hash__ = object.__hash__


def _fails(pending: Pending, *_: object) -> NoReturn:
    raise pending._misuse()  # pyright: ignore[reportPrivateUsage]


for _operation in (
    "bool str repr format len iter getitem setitem contains call int float index eq ne lt le gt ge add radd sub rsub mul rmul truediv rtruediv "
    "floordiv rfloordiv mod rmod pow rpow and rand or ror xor rxor neg round enter aenter aiter"
).split():
    setattr(Pending, f"__{_operation}__", _fails)
Pending.__name__ = Pending.__qualname__ = "coroutine"
