"""Runs the functions of a plugin for the gateway: one JSON object to a line, over standard input and output.

The first line from the gateway is {"init": {...}}; the answer is {"ready": {...}} or {"fault": {...}}. Then
{"id": n, "run": name, "kwargs": {...}} or {"id": n, "run": name, "args": [...]} is answered by {"id": n, "value": v} or
{"id": n, "fault": {...}}. A plugin asks with {"ask": n, "fetch": {...}}, answered by {"answer": n, "value": v} or
{"answer": n, "error": text}. What the plugin prints goes to standard error.
"""

import asyncio
import collections.abc
import concurrent.futures
import importlib
import inspect
import itertools
import json
import os
import queue
import sys
import threading
import traceback
import types
import typing

CODE = "/plugin/code"
WORKERS = 8


class Channel:
    """The lines to and from the gateway."""

    def __init__(self):
        self._out = os.dup(1)
        os.dup2(2, 1)  # print goes to stderr
        self._in = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._asked = {}

    def lines(self):
        for line in self._in:
            yield json.loads(line)

    def send(self, message):
        data = json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            while data:
                data = data[os.write(self._out, data):]

    def ask(self, **what):
        number, box = next(self._numbers), queue.SimpleQueue()
        self._asked[number] = box
        self.send({"ask": number, **what})
        answer = box.get()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["value"]

    def answered(self, message):
        box = self._asked.pop(message["answer"], None)
        if box is not None:
            box.put(message)


class Response:
    """The answer of fetch."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.text = status, headers, body

    def json(self):
        return json.loads(self.text)


def module(channel, secrets):
    """Returns the module "sallyport" of plugins."""
    m = types.ModuleType("sallyport", "What plugins can use of the gateway.")

    def fetch(url, *, method="GET", headers=None, body=None):
        """Requests an https URL of a granted host."""
        if body is not None and not isinstance(body, str):
            body = json.dumps(body)
        return Response(**channel.ask(fetch={"url": url, "method": method, "headers": headers or {}, "body": body}))

    def secret(name):
        """Returns a granted secret."""
        if name not in secrets:
            raise KeyError(f"no secret {name}: name it in plugin.yaml, and grant it in upstreams.yaml")
        return secrets[name]

    m.fetch, m.secret = fetch, secret
    return m


class Unsupported(Exception):
    """A type hint that no schema can be made of."""


SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def schema(hint):
    """Returns the JSON Schema of a type hint."""
    if hint in SIMPLE:
        return {"type": SIMPLE[hint]}
    if hint in (typing.Any, inspect.Parameter.empty):
        return {}
    if hint in (list, dict):
        return {"type": "array" if hint is list else "object"}
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        found = schema(args[0])
        words = [a for a in args[1:] if isinstance(a, str)]
        return {**found, "description": words[0]} if words else found
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema(a) for a in args]}
    if origin in (list, collections.abc.Sequence):
        return {"type": "array", "items": schema(args[0])}
    if origin in (dict, collections.abc.Mapping):
        return {"type": "object", "additionalProperties": schema(args[1])}
    if typing.is_typeddict(hint):
        members = typing.get_type_hints(hint, include_extras=True)
        return {
            "type": "object",
            "properties": {name: schema(t) for name, t in members.items()},
            "required": sorted(hint.__required_keys__),
        }
    raise Unsupported(getattr(hint, "__name__", str(hint)))


def describe(function):
    """Returns what the gateway must know of a function: its documentation, and the schemas of its hints."""
    hints = typing.get_type_hints(function, include_extras=True)
    properties, required = {}, []
    for p in inspect.signature(function).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            raise Unsupported(f"parameter {p.name}: *args, **kwargs and / cannot be described")
        try:
            properties[p.name] = schema(hints.get(p.name, typing.Any))
        except Unsupported as e:
            raise Unsupported(f"parameter {p.name} has the type {e}; use str, int, float, bool, list, dict, Literal, TypedDict") from None
        if p.default is p.empty:
            required.append(p.name)
        elif p.default is not None:
            try:
                json.dumps(p.default, allow_nan=False)
                properties[p.name] = {**properties[p.name], "default": p.default}
            except (TypeError, ValueError):
                pass
    found = {"doc": inspect.getdoc(function) or "", "input": {"type": "object", "properties": properties, "required": required, "additionalProperties": False}}
    if hints.get("return", typing.Any) not in (typing.Any, type(None)):
        try:
            found["output"] = schema(hints["return"])
        except Unsupported:
            pass
    return found


def fault(error):
    """Returns an exception with the place in the code of the plugin."""
    found = {"type": type(error).__name__, "message": str(error)[:2000]}
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(CODE + "/"):
            found["file"], found["line"] = frame.filename[len(CODE) + 1:], frame.lineno
    if isinstance(error, SyntaxError) and (error.filename or "").startswith(CODE + "/"):
        found["file"], found["line"], found["message"] = error.filename[len(CODE) + 1:], error.lineno, error.msg
    return found


class Plugin:
    """The functions of the plugin."""

    def __init__(self, channel, init):
        sys.path.insert(0, CODE)
        sys.modules["sallyport"] = module(channel, init.get("secrets") or {})
        self._channel = channel
        main = importlib.import_module(init["entry"].removesuffix(".py"))
        self._functions = {}
        for name in init["functions"]:
            function = getattr(main, name, None)
            if callable(function):
                self._functions[name] = function

    def ready(self, described):
        found = {}
        for name, function in self._functions.items():
            try:
                found[name] = describe(function) if name in described else {}
            except Unsupported as e:
                raise Unsupported(f"{name}: {e}") from None
        return found

    def run(self, message):
        answer = {"id": message["id"]}
        try:
            function = self._functions[message["run"]]
            if "each" in message:
                value = [finished(function(text)) for text in message["each"]]
            else:
                value = finished(function(*message.get("args", ()), **message.get("kwargs", {})))
            self._channel.send({**answer, "value": value})
        except BaseException as e:  # also SystemExit, which must not end the thread silently
            self._channel.send({**answer, "fault": fault(e)})


async def wait_for(value):
    return await value


def finished(value):
    """Returns a value, or what it is when it has been awaited."""
    return asyncio.run(wait_for(value)) if inspect.isawaitable(value) else value


def main():
    channel = Channel()
    lines = channel.lines()
    init = next(lines)["init"]
    box = queue.SimpleQueue()

    def load():
        try:
            plugin = Plugin(channel, init)
            channel.send({"ready": plugin.ready(init["described"])})
            box.put(plugin)
        except BaseException as e:
            channel.send({"fault": fault(e)})

    threading.Thread(target=load, daemon=True).start()  # so that it may fetch while it is imported
    plugin = None
    long, short = (concurrent.futures.ThreadPoolExecutor(WORKERS) for _ in range(2))  # tools must not delay hooks
    for message in lines:
        if "answer" in message:
            channel.answered(message)
            continue
        plugin = plugin or box.get()
        (long if "kwargs" in message else short).submit(plugin.run, message)
    os._exit(0)


main()
