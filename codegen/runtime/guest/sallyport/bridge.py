"""The guest's end of the bridge: a websocket over a Unix socket, using only the standard library (docs/reference/bridge.md)."""

from __future__ import annotations

import collections
import gc
import io
import json
import os
import socket
import threading

from . import Call, ToolError, listener

TYPE_CHECKING = False  # typing is not imported at run time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Union

    from . import Progress

    Frame = dict[str, Any]
    Listener = Union[Callable[[Progress], object], None]

LOST = "the gateway closed the bridge"
OVER = "the program that made this call has ended"
LARGE, CHUNK = 1 << 20, 1 << 16
WORKSPACE = os.environ.get("SALLYPORT_WORKSPACE", "/workspace")
FRAME = 16 << 20  # bytes of a frame, unless the host sets another limit
BYTES: Any = bytes  # checkers do not narrow by it: what is decoded has any type
HOST = 0  # the pseudo call number for frames that the host sends unrequested


class Bridge:
    """RFC 6455, client side, text frames.

    One of the waiting threads reads the socket and delivers the answers of the others, each of
    which sleeps on a lock of its own: a single call needs no thread switch, and of many only
    the thread wakes whose answer has arrived.
    """

    def __init__(self, path: str | int) -> None:
        if isinstance(path, int):  # the descriptor of a connection
            self._sock = socket.socket(fileno=path)
        else:
            self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._sock.connect(path)
        self._source = _Source(self._sock)
        self._in, self._used = io.BufferedReader(self._source, CHUNK), 0
        self._state, self._write = threading.Lock(), threading.Lock()
        self._calls: dict[int, Call] = {}
        self._next, self._reading = 1, False
        self._inbox: collections.deque[Frame | bytes] = collections.deque()
        self._out: collections.deque[bytes] = collections.deque()
        self._pid, self._lost, self._over = os.getpid(), "", ""
        self._limit = FRAME
        self._handshake()

    def _handshake(self) -> None:
        self._sock.sendall(
            b"GET /v1 HTTP/1.1\r\nHost: sallyport\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2FsbHlwb3J0LWd1ZXN0IQ==\r\n\r\n"
        )
        if b" 101 " not in self._line():
            raise ConnectionError("the gateway refused the bridge")
        while self._line().strip():
            pass

    def _line(self) -> bytes:
        line = self._in.readline()
        self._used += len(line)
        return line

    def heard(self) -> Frame | bytes | None:
        """Waits for a frame that is not an answer: files, their contents (bytes) or a program; None when the gateway has closed the bridge."""
        waiting = Call("", None)
        with self._state:
            self._calls[HOST] = waiting
            if self._inbox:
                waiting.frame = self._inbox.popleft()
            elif self._lost:
                return None
        self._wait(waiting)
        del self._calls[HOST]
        return None if isinstance(waiting.frame, dict) and "error" in waiting.frame else waiting.frame

    def go(self, limit: int | None = None) -> None:
        """Allows calls, each in a frame of at most limit bytes."""
        self._over, self._limit = "", limit or FRAME

    def rest(self) -> None:
        """Fails the pending calls of a finished program, and rejects calls of its remaining threads until the next program."""
        with self._state:
            self._over = OVER
            self._fail(OVER)
        with self._write:
            self._flush()

    def _fail(self, why: str) -> None:
        for waiting in self._calls.values():
            waiting.frame = waiting.frame or {"error": {"kind": "internal", "message": why}}
            _ring(waiting)

    def call(self, tool: str, args: Frame) -> Frame:
        """Calls a tool and returns the answer frame."""
        return self.ask({"type": "call", "id": 0, "tool": tool, "args": args}, tool, listener.get())

    def ask(self, frame: Frame, tool: str, listener: Listener = None) -> Frame:
        """Sends a frame with a new id and returns its answer frame."""
        if os.getpid() != self._pid:
            raise ToolError("tools can be called only in the main process", "invalid", tool, "use threads: sallyport.parallel")
        waiting = Call(tool, listener)
        with self._state:
            if self._lost:
                raise ToolError(self._lost, "internal", tool)
            number, self._next = self._next, self._next + 1
            self._calls[number] = waiting
        try:
            frame["id"] = number
            if listener:
                frame["progress"] = True
            self._request(self._fitting(_encoded(frame), tool), tool)
            self._wait(waiting)
        finally:
            with self._state:
                self._calls.pop(number, None)
        assert isinstance(waiting.frame, dict)  # only the host's frames are bytes
        return waiting.frame

    def _fitting(self, payload: bytes, tool: str) -> bytes:
        """Returns payload, or raises an error if it exceeds the limit, beyond which the host would end the program."""
        if len(payload) <= self._limit:
            return payload
        size, limit = f"{len(payload) / (1 << 20):.1f}", f"{self._limit / (1 << 20):g}"
        raise ToolError(f"the arguments are {size} MiB, and a call can have {limit} MiB", "limit", tool, "split them over several calls, or pass a path or a URL instead of the content")

    def _request(self, payload: bytes, tool: str) -> None:
        """Queues a frame and sends the queue, unless another thread is sending, which then sends this frame too."""
        with self._state:
            if self._over:
                raise ToolError(self._over, "internal", tool)
            self._out.append(_framed(0x81, payload))
        while self._out and self._write.acquire(blocking=False):
            try:
                self._flush()
            finally:
                self._write.release()

    def _flush(self) -> None:
        """Sends the queued frames. The caller holds the write lock."""
        frames = [self._out.popleft() for _ in range(len(self._out))]
        if frames:
            self._sock.sendall(b"".join(frames))

    def send(self, frame: Frame) -> None:
        with self._write:
            self._send(0x81, _encoded(frame))

    def _send(self, opcode: int, payload: bytes) -> None:
        self._sock.sendall(_framed(opcode, payload))

    def _wait(self, waiting: Call) -> None:
        while True:
            if waiting.told is not None:
                waiting.tell()
            with self._state:
                if waiting.told is not None:
                    continue
                if waiting.frame is not None:
                    return
                lead, self._reading = not self._reading, True
                if not lead:
                    if waiting.bell is None:
                        waiting.bell = threading.Lock()
                        waiting.bell.acquire()
                    waiting.asleep = True
            if lead:
                self._lead(waiting)
            else:
                waiting.bell.acquire()  # released for an answer, for progress, or to become the reader

    def _lead(self, mine: Call) -> None:
        """Reads until a frame for the thread's own call arrives, then makes another thread the reader."""
        lost = False
        try:
            while mine.frame is None and mine.told is None or self._whole():
                lost = True
                frame = self.receive()
                if frame is None:
                    return
                lost = False
                self._deliver(frame)
        finally:
            with self._state:
                self._reading = False
                if lost:
                    self._lost = LOST
                    self._fail(LOST)
                for waiting in self._calls.values():
                    if waiting.asleep:
                        _ring(waiting)
                        break

    def _deliver(self, frame: Any) -> None:
        """Delivers a frame to its call, or to the inbox."""
        kind: str = "content" if type(frame) is BYTES else frame.get("type")
        if kind == "ping":
            return self.send({"type": "pong"})
        own = kind in ("run", "files", "content")
        with self._state:
            waiting = self._calls.get(HOST if own else frame.get("id"))
            if own and (waiting is None or waiting.frame is not None):
                self._inbox.append(frame)
            elif waiting is not None:
                if kind == "progress":
                    waiting.told = frame
                else:
                    waiting.frame = frame
                _ring(waiting)

    def receive(self) -> Frame | bytes | None:
        """Reads one message, bytes if it is binary; None when the gateway has closed the bridge."""
        parts: list[bytes] = []
        binary = False
        while True:
            head = self._take(2)
            if len(head) < 2:
                return None
            size = head[1] & 0x7F
            if size >= 126:
                size = int.from_bytes(self._take(2 if size == 126 else 8), "big")
            data = self._take(size)
            opcode = head[0] & 0x0F
            if opcode == 8 or len(data) < size:
                return None
            if opcode == 9:
                with self._write:
                    self._send(0x8A, data)
            elif opcode < 3:
                binary = opcode == 2 or bool(parts) and binary
                parts.append(data)
                if head[0] & 0x80:
                    whole = data if len(parts) == 1 else b"".join(parts)
                    return whole if binary else _parse(whole)

    def _take(self, size: int) -> bytes:
        """Returns the next bytes, fewer at the end of the stream."""
        self._used += size
        return self._in.read(size)

    def _whole(self) -> bool:
        """Reports whether a whole frame is buffered, so that it can be read without blocking."""
        there = self._source.got - self._used
        if there < 2:
            return False
        data = self._in.peek(4)
        size = data[1] & 0x7F
        return size < 126 and there >= 2 + size or size == 126 and there >= 4 + int.from_bytes(data[2:4], "big")


class _Source(io.RawIOBase):
    """Counts the bytes read from a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.got = sock, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = self.sock.recv_into(buffer)
        self.got += size
        return size


def _framed(opcode: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        head = bytes((opcode, 0x80 | size))
    elif size < 1 << 16:
        head = bytes((opcode, 0xFE)) + size.to_bytes(2, "big")
    else:
        head = bytes((opcode, 0xFF)) + size.to_bytes(8, "big")
    # A zero mask is valid: masks only protect proxies, which a Unix socket does not have.
    return head + b"\0\0\0\0" + payload


def _ring(waiting: Call) -> None:
    """Wakes the thread that waits for a call's answer, if it sleeps. The caller holds the state lock."""
    if waiting.asleep:
        waiting.asleep = False
        waiting.bell.release()


def _encoded(frame: Frame) -> bytes:
    try:
        return json.dumps(frame, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:  # a lone surrogate: valid in JSON, but not in UTF-8
        return json.dumps(frame, allow_nan=False).encode()


def _parse(payload: bytes) -> Frame:
    """Decodes a frame. A frame that cannot be decoded fails only its own call."""
    paused = len(payload) > LARGE and gc.isenabled()
    if paused:
        gc.disable()  # avoids repeated scans of the new objects
    try:
        return json.loads(payload)
    except RecursionError:
        why = "is nested too deeply"
    except MemoryError:
        why = "does not fit into the sandbox's memory"
    finally:
        if paused:
            gc.enable()
    return _undecoded(payload, why)


def _undecoded(payload: bytes, why: str) -> Frame:
    """Returns an error as the answer to a call whose result cannot be decoded. A JSON result is saved to a file."""
    number = int(payload[:64].split(b'"id":')[1].split(b",")[0])  # docs/reference/bridge.md: type and id come first
    error = {"kind": "limit", "message": f"the result of {len(payload)} bytes {why}", "hint": "ask for less: a page, a filter, fewer fields"}
    head = b'{"type":"result","id":%d,"value":{"json":' % number
    path = f"{WORKSPACE}/result-{os.urandom(4).hex()}.json"
    if payload.startswith(head):
        try:
            with open(path, "wb") as file:
                file.write(memoryview(payload)[len(head) : -2])
        except OSError:  # no room
            if os.path.exists(path):
                os.unlink(path)
        else:
            error["message"] += f"; it is saved in {path}"
            error["hint"] = "read the file in pieces, or ask for less: a page, a filter, fewer fields"
    return {"id": number, "error": error}
