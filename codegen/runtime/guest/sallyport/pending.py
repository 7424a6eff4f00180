"""What NAME.aio(...) returns: an awaitable that cannot be taken for the result of the call."""

from collections.abc import Coroutine

unawaited = {}  # id of a call that nothing has awaited -> name of its tool


def forget():
    unawaited.clear()


class Pending(Coroutine):
    """A call that is made when it is awaited. Every other use is an error."""

    __slots__ = ("_start", "_name", "_coroutine", "__weakref__")

    def __init__(self, start, name):
        self._start, self._name, self._coroutine = start, name, None
        unawaited[id(self)] = name

    def _begun(self):
        if self._coroutine is None:
            unawaited.pop(id(self), None)
            self._coroutine = self._start()
        return self._coroutine

    def __await__(self):
        return self._begun().__await__()

    def send(self, value):
        return self._begun().send(value)

    def throw(self, *error):
        return self._begun().throw(*error)

    def close(self):
        unawaited.pop(id(self), None)
        if self._coroutine is not None:
            self._coroutine.close()

    def __getattr__(self, name):
        raise AttributeError(f"no {name}") if name.startswith(("__", "cr_", "gi_")) else _misuse(self, AttributeError, "." + name)

    __hash__ = object.__hash__


def _misuse(pending, kind=TypeError, member=""):
    unawaited.pop(id(pending), None)
    call = pending._name + "(...)"
    error = kind(f"{pending._name}.aio(...){member}: the call was not awaited")
    error.hint = f"write (await {pending._name}.aio(...)){member}, or {call}{member}"
    return error


def _fails(pending, *_):
    raise _misuse(pending)


for _operation in (
    "bool str repr format len iter getitem setitem contains call int float index eq ne lt le gt ge add radd sub rsub mul rmul truediv rtruediv "
    "floordiv rfloordiv mod rmod pow rpow and rand or ror xor rxor neg round enter aenter aiter"
).split():
    setattr(Pending, f"__{_operation}__", _fails)
Pending.__name__ = Pending.__qualname__ = "coroutine"
