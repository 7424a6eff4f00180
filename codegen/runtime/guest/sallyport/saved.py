"""Implements `save` and `load`: one file per value, which the guests of all languages can read.

The first line of a file is a header: {"type":"json"}, {"type":"bytes"} or
{"type":"blob","mime":...,"name":...,"uri":...}. The content follows.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False  # typing is not imported at run time
if TYPE_CHECKING:
    from typing import Any, Union

    from . import ToolError

    Bytes = Union[bytes, bytearray, "memoryview[int]"]

FOLDER = os.environ.get("SALLYPORT_WORKSPACE", "/workspace") + "/.saved"
BYTES: Any = (bytes, bytearray, memoryview)  # checkers do not take it apart: the type of a memoryview's items is unknown


def save(name: str, value: object) -> None:
    path, temporary = _file(name, "save"), f"{FOLDER}/.{os.urandom(8).hex()}"
    head, data = _packed(value)
    os.makedirs(FOLDER, exist_ok=True)
    try:
        with open(temporary, "wb") as file:
            file.write(json.dumps(head).encode() + b"\n")
            file.write(data)
        os.replace(temporary, path)  # atomic
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def load(name: str) -> Any:
    path = _file(name, "load")
    try:
        with open(path, "rb") as file:
            head, data = file.readline(2000), file.read()
    except FileNotFoundError:
        raise _missing(name) from None
    return _unpacked(name, head, data)


def _packed(value: Any) -> tuple[dict[str, str], Bytes]:
    from . import Blob, plain

    def inside(inner: Any) -> Any:
        if isinstance(inner, BYTES) or isinstance(inner, Blob):
            raise TypeError(f"save keeps {type(inner).__name__} only as a whole value: save it under a name of its own")
        return plain(inner)

    if isinstance(value, Blob):
        return {"type": "blob", "mime": value.mime, "name": value.name, "uri": value.uri}, value.data
    if isinstance(value, BYTES):
        return {"type": "bytes"}, value
    try:
        text = json.dumps(value, default=inside, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as err:
        why = "JSON has no NaN and no infinity: write None" if "float" in str(err) else err
        raise TypeError(f"value cannot be saved: {why}") from None
    try:
        return {"type": "json"}, text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return {"type": "json"}, json.dumps(value, default=inside, separators=(",", ":")).encode()


def _unpacked(name: str, first: bytes, data: bytes) -> Any:
    from . import Blob, ToolError

    try:
        head: dict[str, Any] = json.loads(first)
        if head["type"] == "blob":
            return Blob(data, head.get("mime", ""), head.get("uri", ""), head.get("name", ""))
        return data if head["type"] == "bytes" else json.loads(data)
    except (ValueError, KeyError, TypeError):
        raise ToolError(f"what is saved as {name!r} was not written by save", "invalid", "sallyport.load") from None


def _file(name: Any, verb: str) -> str:
    from . import ToolError

    fit = isinstance(name, str) and name.isprintable() and not set(name) & set("/\\") and name[:1] not in ("", ".") and len(name) <= 60
    if not fit:
        hint = "a plain file name of at most 60 characters, with no slash and no dot in front"
        raise ToolError(f"{verb}: {name!r:.80} is no name", "invalid", "sallyport." + verb, hint)
    return f"{FOLDER}/{name}"


def _missing(name: str) -> ToolError:
    import difflib

    from . import ToolError
    from .check import same_name

    names = sorted(each for each in (os.listdir(FOLDER) if os.path.isdir(FOLDER) else ()) if not each.startswith("."))
    near = [each for each in names if same_name(each, name)] or difflib.get_close_matches(name, names, 1, 0.5)
    hint = (f"did you mean {near[0]}? " if near else "") + ("saved are: " + ", ".join(names[:20]) if names else "nothing is saved yet")
    return ToolError(f"nothing is saved as {name!r}", "not_found", "sallyport.load", hint)
