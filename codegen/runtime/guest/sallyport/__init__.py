"""What a program can import as `sallyport`: calls of tools, and helpers around them.

The wrappers under `servers` are the usual way in; they end up in `call`. The
only way out of the sandbox is one websocket over a Unix socket, spoken here
with the standard library alone.
"""

import contextvars
import importlib
import json
import os
import socket
import sys
import threading
import types

__all__ = ["call", "async_call", "parallel", "progress", "ToolError", "Blob"]


class _Omit:
    def __repr__(self):
        return "..."


OMIT = _Omit()


class ToolError(Exception):
    """A tool call that failed: `kind` says how, `tool` which, `hint` what would be right."""

    def __init__(self, message, kind="internal", tool="", hint=""):
        super().__init__(message)
        self.message, self.kind, self.tool, self.hint = message, kind, tool, hint


class Blob:
    """Binary content of a result: `data` (bytes), `mime`, and `uri` or `name` where there is one."""

    __slots__ = ("data", "mime", "uri", "name")

    def __init__(self, data, mime="", uri="", name=""):
        self.data, self.mime, self.uri, self.name = data, mime, uri, name

    def __repr__(self):
        return f"<Blob {self.mime or 'application/octet-stream'}, {len(self.data)} bytes>"

    def __len__(self):
        return len(self.data)


class Progress:
    """How far a call is: `progress` of `total` (None if it is not known), `message`, and the `tool`."""

    __slots__ = ("progress", "total", "message", "tool")

    def __init__(self, progress, total=None, message="", tool=""):
        self.progress, self.total, self.message, self.tool = progress, total, message, tool

    def __repr__(self):
        of = "" if self.total is None else f"/{self.total}"
        return f"<Progress {self.tool} {self.progress}{of}{' ' + self.message if self.message else ''}>"


_listener = contextvars.ContextVar("listener", default=None)


class progress:
    """Hears how far the calls inside are: with progress(lambda p: print(p.progress, p.total)): f(...)"""

    def __init__(self, listener):
        self._listener, self._tokens = listener, []

    def __enter__(self):
        self._tokens.append(_listener.set(self._listener))
        return self

    def __exit__(self, *_):
        _listener.reset(self._tokens.pop())


class _Call:
    __slots__ = ("frame", "told", "tool", "listener")

    def __init__(self, tool, listener):
        self.frame = self.told = None
        self.tool, self.listener = tool, listener

    def tell(self):
        """Hands the newest progress to the program. Its mistakes do not hurt the call."""
        told, self.told = self.told, None
        try:
            if self.listener:
                self.listener(Progress(told.get("progress"), told.get("total"), told.get("message", ""), self.tool))
        except Exception as err:
            self.listener = None
            print(f"progress of {self.tool}: {type(err).__name__}: {err}", file=sys.stderr)


class _Bridge:
    """The guest's end of the websocket (RFC 6455, client side, text frames).

    Whichever thread waits for an answer reads the socket and hands out the
    answers of the others: a lone call needs no switch of threads.
    """

    def __init__(self, path):
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sock.connect(path)
        self._in = self._sock.makefile("rb", 1 << 16)
        self._state = threading.Condition()
        self._write = threading.Lock()
        self._calls, self._next, self._reading = {}, 1, False
        self._pid, self._lost = os.getpid(), ""
        self._handshake()

    def _handshake(self):
        self._sock.sendall(
            b"GET /v1 HTTP/1.1\r\nHost: sallyport\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2FsbHlwb3J0LWd1ZXN0IQ==\r\n\r\n"
        )
        if b" 101 " not in self._in.readline():
            raise ConnectionError("the gateway refused the bridge")
        while self._in.readline().strip():
            pass

    def send(self, frame):
        payload = json.dumps(frame, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        self._send(0x81, payload)

    def _send(self, opcode, payload):
        size = len(payload)
        if size < 126:
            head = bytes((opcode, 0x80 | size))
        elif size < 1 << 16:
            head = bytes((opcode, 0xFE)) + size.to_bytes(2, "big")
        else:
            head = bytes((opcode, 0xFF)) + size.to_bytes(8, "big")
        # A mask of zeros is a mask: masks protect proxies, and there is none on a Unix socket.
        with self._write:
            self._sock.sendall(head + b"\0\0\0\0" + payload)

    def receive(self):
        """Reads one message; None when the gateway has closed the bridge."""
        parts = []
        while True:
            head = self._in.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 0x7F
            if size >= 126:
                size = int.from_bytes(self._in.read(2 if size == 126 else 8), "big")
            data, opcode = self._in.read(size), head[0] & 0x0F
            if opcode == 8:
                return None
            if opcode == 9:
                self._send(0x8A, data)
            elif opcode < 3:
                parts.append(data)
                if head[0] & 0x80:
                    return _parse(b"".join(parts))

    def call(self, tool, args):
        if os.getpid() != self._pid:
            raise ToolError("tools can be called only in the main process", "invalid", tool, "use threads: sallyport.parallel")
        waiting = _Call(tool, _listener.get())
        with self._state:
            if self._lost:
                raise ToolError(self._lost, "internal", tool)
            number, self._next = self._next, self._next + 1
            self._calls[number] = waiting
        try:
            frame = {"type": "call", "id": number, "tool": tool, "args": args}
            if waiting.listener:
                frame["progress"] = True
            self.send(frame)
            self._wait(waiting)
        finally:
            with self._state:
                self._calls.pop(number, None)
        return waiting.frame

    def _wait(self, waiting):
        while True:
            with self._state:
                while waiting.frame is None and waiting.told is None and self._reading:
                    self._state.wait()
                if waiting.told is None:
                    if waiting.frame is not None:
                        return
                    self._reading = True
            if waiting.told is not None:
                waiting.tell()
                continue
            frame = None
            try:
                frame = self.receive()
            finally:
                with self._state:
                    self._reading = False
                    self._deliver(frame)
                    self._state.notify_all()

    def _deliver(self, frame):
        if frame is None:
            self._lost = "the gateway closed the bridge"
            for waiting in self._calls.values():
                waiting.frame = {"error": {"kind": "internal", "message": self._lost}}
        elif frame.get("id") in self._calls:
            waiting = self._calls[frame["id"]]
            if frame.get("type") == "progress":
                waiting.told = frame
            else:
                waiting.frame = frame


def _parse(payload):
    """Decodes a frame. What cannot be decoded fails the call that it answers, and no other."""
    try:
        return json.loads(payload)
    except RecursionError:
        why = "is nested too deeply"
    except MemoryError:
        why = "does not fit into the sandbox's memory"
    number = int(payload[:64].split(b'"id":')[1].split(b",")[0])  # docs/bridge.md: type and id come first
    return {"id": number, "error": {"kind": "limit", "message": f"the result of {len(payload)} bytes {why}"}}


_bridge = None


def _open(path):
    global _bridge
    _bridge = _Bridge(path)
    return _bridge


def _link():
    """By what calls go out: the bridge, or outside of a sandbox the client of a gateway."""
    global _bridge
    if _bridge is None:
        from . import client

        _bridge = client.link()
    return _bridge


def _native(value):
    if "parts" in value:
        return [_native(part) for part in value["parts"]]
    if "blob" in value:
        import binascii

        blob = value["blob"]
        return Blob(binascii.a2b_base64(blob.get("data") or ""), blob.get("mime", ""), blob.get("uri", ""), blob.get("name", ""))
    return value.get("json")


def _plain(value):
    """Turns what programs pass where JSON is wanted into JSON: bytes, Blob, sets, dates, dataclasses."""
    if isinstance(value, (bytes, bytearray, Blob)):
        import base64

        return base64.b64encode(value.data if isinstance(value, Blob) else value).decode()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    if hasattr(value, "__fspath__"):
        return os.fspath(value)
    raise TypeError(f"an argument of type {type(value).__name__} cannot be sent: use str, numbers, bool, None, list or dict")


def call(tool, args=None, spec=None):
    """Calls the tool with id "upstream.name"; `args` by their names on the wire, `spec` as a wrapper has it."""
    args = {name: value for name, value in (args or {}).items() if value is not OMIT}
    try:
        args = json.loads(json.dumps(args, default=_plain, allow_nan=False))
    except ValueError as err:
        why = "NaN and infinity cannot be sent" if "float" in str(err) else err
        raise TypeError(f"arguments of {tool} are not JSON: {why}") from None
    frame = _link().call(tool, args)
    if "error" in frame:
        error = frame["error"]
        raise ToolError(error["message"], error.get("kind", "internal"), tool, error.get("hint", ""))
    return _native(frame["value"])


async def async_call(tool, args=None, spec=None):
    """Is `call` for asynchronous code."""
    import asyncio

    return await asyncio.get_running_loop().run_in_executor(_executor(), contextvars.copy_context().run, call, tool, args, spec)


_threads = None


def _executor():
    global _threads
    if _threads is None:
        from concurrent.futures import ThreadPoolExecutor

        _threads = ThreadPoolExecutor(16)
    return _threads


def parallel(*thunks):
    """Runs functions without arguments at once and returns their results in order.

    parallel(lambda: a(1), lambda: b(2)) or parallel([lambda x=x: f(x) for x in xs])
    """
    if len(thunks) == 1 and hasattr(thunks[0], "__iter__") and not callable(thunks[0]):
        thunks = list(thunks[0])
    if not all(callable(thunk) for thunk in thunks):
        raise TypeError("parallel takes functions, not results: parallel(lambda: f(1), lambda: f(2))")
    futures = [_executor().submit(contextvars.copy_context().run, thunk) for thunk in thunks]
    for future in futures:
        future.exception()
    return [future.result() for future in futures]


class _Package(types.ModuleType):
    """A package of wrappers that loads each on first use."""

    def __setattr__(self, name, value):
        # The import system binds a submodule to its package under the tool's own name: bind the function instead.
        if isinstance(value, types.ModuleType) and name in self.__dict__.get("__tools__", ()):
            value = getattr(value, name, value)  # resources and prompts are modules
        super().__setattr__(name, value)

    def __getattr__(self, name):
        tools = self.__dict__.get("__tools__", {})
        if name in tools:
            importlib.import_module(f"{self.__name__}.{tools[name]}")
            return self.__dict__[name]
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("resources", "prompts"):
            raise ImportError(f"{self.__name__} offers no {name}")
        import difflib

        near = difflib.get_close_matches(name, tools, 1, 0.5)
        raise ImportError(
            f"{self.__name__} has no tool {name}" + (f"; did you mean {near[0]}?" if near else "; find it with search_tools")
        )

    def __dir__(self):
        return sorted(self.__dict__.get("__tools__", ()))


def package(name, tools):
    """Makes the package `name` lazy: tools maps what it exports to its submodules."""
    module = sys.modules[name]
    module.__class__ = _Package
    types.ModuleType.__setattr__(module, "__tools__", dict(tools))
