"""The transport for programs outside of a sandbox: MCP over HTTP to a running gateway (sallyport serve --http).

Each call is one request of its own, so threads do not wait for each other; nothing is sent twice.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
from urllib.parse import urlsplit

from . import Call, ToolError, listener

TYPE_CHECKING = False  # typing is not imported at run time
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

    from .jsontypes import JSON, Frame, Object

VERSION = "2026-07-28"  # of MCP: the first one with stateless requests
MOST, LINES = 64 << 20, 100_000  # maximum bytes of one response, and lines of one event
META = "io.modelcontextprotocol/"
START = "start it: sallyport serve --http 127.0.0.1:8080, and say where it is with SALLYPORT_URL or sallyport.connect(url=...)"
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": VERSION}


def link() -> Gateway:
    """Returns the gateway that the environment variables name."""
    return Gateway(None, None)


class Gateway:
    def __init__(self, url: str | None, token: str | None) -> None:
        self.url = (url or os.environ.get("SALLYPORT_URL") or "http://127.0.0.1:8080").rstrip("/")
        self.token = token or os.environ.get("SALLYPORT_TOKEN") or ""
        self.ids = itertools.count(1)
        for path in ("/mcp/direct", "/mcp"):
            if self.url.endswith(path):
                self.url = self.url[: -len(path)]
        self.parts = urlsplit(self.url)
        if "@" in self.parts.netloc:  # errors would show the credentials
            raise ToolError("the address of a gateway has no login in it", "invalid", "", "the token goes to SALLYPORT_TOKEN, or sallyport.connect(token=...)")
        if self.parts.scheme not in ("http", "https") or not self.parts.hostname:
            raise ToolError(f"{self.url!r:.200} is no address of a gateway", "invalid", "", "write it as http://127.0.0.1:8080")

    def unwrap(self, frame: Frame, spec: str) -> Frame:
        """Returns the answer with the value in {"result": VALUE}, if the spec says that results are wrapped."""
        value: JSON = frame.get("value", {}).get("json")
        if not json.loads(spec).get("wrap") or not isinstance(value, dict) or list(value) != ["result"]:
            return frame
        return {"value": {"json": value["result"]}}

    def call(self, tool: str, args: Frame) -> Frame:
        """Makes one call and returns a frame of the bridge protocol: a value or an error."""
        upstream, _, name = tool.partition(".")
        try:
            if upstream == "sallyport":
                return {"value": _value(self._own(name, args, tool))}
            return {"value": self._offered(upstream, name, args, tool)}
        except _Failed as failed:
            return {"error": failed.error}

    def _offered(self, upstream: str, name: str, args: Frame, tool: str) -> Frame:
        if name == "resources/read":
            read = {"uri": f"sallyport://{upstream}/{args.get('uri', '')}"}
            return _contents(self._ask("/mcp/direct", name, read, tool))
        if name == "prompts/get":
            answer = self._ask("/mcp/direct", name, {**args, "name": f"{upstream}.{args.get('name', '')}"}, tool)
            return {"json": {key: value for key, value in answer.items() if key != "resultType"}}
        if "/" in name:
            raise _failed("invalid", f"{tool} works inside of execute_code only", "a gateway lists what all upstreams offer at once")
        return _value(self._ask("/mcp/direct", "tools/call", {"name": tool, "arguments": args}, tool))

    def _own(self, name: str, args: Frame, tool: str) -> Object:
        """Calls a function of the gateway itself."""
        if name == "describe":
            args = {"query": args.get("tool", ""), "detail": "full", "limit": 1, "language": "python"}
        return self._ask("/mcp", "tools/call", {"name": "search_tools", "arguments": args}, tool)

    def _ask(self, path: str, method: str, params: Frame, tool: str) -> Object:
        number, told = next(self.ids), listener.get()
        meta: Frame = {META + "protocolVersion": VERSION, META + "clientCapabilities": {}, META + "clientInfo": {"name": "sallyport-client", "version": "1"}}
        if told:
            meta["progressToken"] = number
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}
        named = str(params.get("name") or params.get("uri", ""))
        if not named.isprintable():  # the name is also sent in a header
            raise _failed("invalid", f"{named!r:.100} has characters that no name has")
        headers: dict[str, str | bytes] = {**HEADERS, "Mcp-Method": method, "Mcp-Name": named.encode("utf-8", "replace")}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        waiting = Call(tool, told)
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        try:
            return self._post(path, data, headers, number, waiting)
        except (OSError, http.client.HTTPException) as err:
            raise _failed("internal", f"the connection to the gateway at {self.url} broke: {err or type(err).__name__}", "whether the call was made is not known") from None
        except (AttributeError, TypeError, ValueError, KeyError, RecursionError):
            raise _failed("internal", f"what answers at {self.url} is no gateway of sallyport", "whether the call was made is not known") from None

    def _post(self, path: str, body: bytes, headers: dict[str, str | bytes], number: int, waiting: Call) -> Object:
        connect = http.client.HTTPSConnection if self.parts.scheme == "https" else http.client.HTTPConnection
        connection = connect(self.parts.hostname or "", self.parts.port, timeout=10)
        try:
            try:
                connection.connect()
            except OSError as err:
                raise _failed("upstream", f"no gateway answers at {self.url}: {err}", START, True) from None
            connection.sock.settimeout(None)  # the gateway limits the duration of a call
            connection.request("POST", self.parts.path + path, body, headers)
            return _result(connection.getresponse(), number, waiting, bool(self.token))
        finally:
            connection.close()


class _Failed(Exception):
    def __init__(self, error: Frame) -> None:
        super().__init__(error["message"])
        self.error = error


def _failed(kind: str, message: str, hint: str = "", retryable: bool = False) -> _Failed:
    return _Failed({"kind": kind, "message": message, "hint": hint, "retryable": retryable})


def _result(response: http.client.HTTPResponse, number: int, waiting: Call, has_token: bool) -> Object:
    """Returns the result of the request, or raises its error."""
    if response.status == 401:
        hint = "set SALLYPORT_TOKEN, or sallyport.connect(token=...), to one of http.tokens in the gateway's upstreams.yaml"
        raise _failed("denied", "the gateway refuses this token" if has_token else "the gateway asks for a token", hint)
    kind: str = response.getheader("Content-Type", "")
    messages = _events(response) if kind.startswith("text/event-stream") else _whole(response)
    for message in messages:
        result, progress = message.get("result"), message.get("params")
        if message.get("method") == "notifications/progress" and isinstance(progress, dict) and progress.get("progressToken") == number:
            waiting.told = progress
            waiting.tell()
        elif "error" in message:
            raise _refused(message["error"])
        elif message.get("id") == number and isinstance(result, dict):
            return _succeeded(result)
    raise _failed("internal", "the gateway ended its answer too early", "whether the call was made is not known")


def _whole(response: http.client.HTTPResponse) -> list[Object]:
    text = response.read(MOST + 1)
    if len(text) > MOST:
        raise _too_long()
    message: JSON = None
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        pass
    if isinstance(message, dict):
        return [message]
    said = text.decode("utf-8", "replace").strip()[:300]
    raise _failed("denied" if response.status == 403 else "internal", f"the gateway answers {response.status}: {said}", START if response.status == 404 else "")


def _events(response: http.client.HTTPResponse) -> Iterator[Object]:
    """Yields the messages of an event stream."""
    data: list[bytes] = []
    size = lines = 0
    for line in iter(lambda: response.readline(MOST + 1), b""):
        size, lines = size + len(line), lines + 1
        if size > MOST or lines > LINES:
            raise _too_long()
        line = line.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data.append(line[5:])
        elif not line:
            text, data, size, lines = b"\n".join(data).strip(), [], 0, 0
            if text:
                yield json.loads(text)


def _too_long() -> _Failed:
    return _failed("limit", f"the answer is longer than {MOST >> 20} MiB", "ask for less at once")


def _refused(error: Any) -> _Failed:
    message = str(error.get("message", "the gateway refuses the call"))
    kind = "not_found" if message.startswith("unknown ") else "invalid" if error.get("code") in (-32602, -32600) else "upstream"
    return _failed(kind, message)


def _succeeded(result: Object) -> Object:
    if result.get("resultType", "complete") != "complete":
        raise _failed("failed", "the tool asks a person something, and nobody sits behind a program")
    if result.get("isError") is True:
        meta = result.get("_meta") or {}
        told: Any = (isinstance(meta, dict) and meta.get("sallyport/error")) or {}
        texts = [_text(block, "text") for block in _list(result, "content") if isinstance(block, dict)]
        message = str(told.get("message") or "") or "\n".join(text for text in texts if text) or "the tool failed and does not say why"
        raise _failed(str(told.get("kind", "failed")), message, str(told.get("hint", "")), told.get("retryable") is True)
    for name in ("content", "contents"):
        _list(result, name)
    return result


def _list(holder: Object, name: str) -> list[JSON]:
    """Returns a member that is a list or not there."""
    found = holder.get(name) or []
    if not isinstance(found, list):
        raise TypeError(name + " is a list")
    return found


def _value(result: Object) -> Frame:
    """Returns the value of a result for programs, by the rules of tool.Result.Value, tested by the same cases."""
    if result.get("structuredContent") is not None:
        return {"json": result["structuredContent"]}
    content = _list(result, "content")
    first = content[0] if len(content) == 1 else None
    if isinstance(first, dict) and first.get("type") == "text" and _text(first, "text").strip() in ("true", "false"):
        return {"json": _text(first, "text").strip() == "true"}
    blocks = [_block(block) for block in content]
    return blocks[0] if len(blocks) == 1 else {"parts": blocks} if blocks else {"json": None}


def _block(block: JSON) -> Frame:
    if not isinstance(block, dict):
        return {"json": block}
    kind, inner = block.get("type"), block.get("resource")
    if kind == "text" and isinstance(block.get("text"), str):
        return {"json": _parsed(_text(block, "text"))}
    if kind in ("image", "audio"):
        return _blob(block.get("data"), _text(block, "mimeType"), "") or {"json": block}
    if kind == "resource" and isinstance(inner, dict):
        if "blob" in inner:
            return _blob(inner["blob"], _text(inner, "mimeType"), _text(inner, "uri")) or {"json": block}
        return {"json": {name: _text(inner, name) for name in ("uri", "mimeType", "text") if _text(inner, name)}}
    return {"json": block}


def _contents(result: Object) -> Frame:
    """Returns the content of a resource. Text stays text."""
    blocks: list[Frame] = []
    for inner in _list(result, "contents"):
        blob = _blob(inner.get("blob"), _text(inner, "mimeType"), _text(inner, "uri")) if isinstance(inner, dict) else None
        blocks.append(blob or {"json": _text(inner, "text") if isinstance(inner, dict) else inner})
    return blocks[0] if len(blocks) == 1 else {"parts": blocks} if blocks else {"json": None}


def _text(holder: Object, name: str) -> str:
    text = holder.get(name)
    return text if isinstance(text, str) else ""


def _parsed(text: str) -> Any:
    trimmed = text.strip()
    if trimmed == "null":
        return None
    if trimmed[:1] not in ("{", "["):
        return text
    try:
        return json.loads(trimmed, parse_constant=_no)
    except (ValueError, RecursionError):
        return text


def _no(name: str) -> NoReturn:
    raise ValueError(name)  # Python's parser accepts NaN, which is not JSON


def _blob(data: JSON, mime: str, uri: str) -> Frame | None:
    import base64

    if not isinstance(data, str):
        return None
    data = data.replace("\r", "").replace("\n", "")
    try:
        base64.b64decode(data + "=" * (-len(data) % 4 if "=" not in data else 0), validate=True)
    except ValueError:
        return None
    return {"blob": {"data": data + "=" * (-len(data) % 4), "mime": mime, "uri": uri}}
