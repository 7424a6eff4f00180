"""Implements `emit`: converts a value to a block of MCP content."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing is not imported at run time
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Optional

    from . import ToolError

    Text = Optional[str]
    Block = dict[str, str]

MOST, MOST_TEXT = 4 << 20, 64 << 10  # bytes of one block: docs/reference/bridge.md
ROWS, COLUMNS, CELL, TABLE = 50, 20, 200, 20_000  # limits of a table; TABLE is in characters

# Checkers do not take these apart, so that what is found in other libraries' values is not of unknown types.
BYTES: Any = (bytes, bytearray, memoryview)
LISTS: Any = (list, tuple)
OBJECT: Any = dict
ROWS_OF: Any = (list, tuple, dict)

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
AUDIO = ("audio/wav", "audio/mpeg", "audio/ogg", "audio/flac")
MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"), (b"ID3", "audio/mpeg"), (b"\xff\xfb", "audio/mpeg"), (b"\xff\xf3", "audio/mpeg"), (b"\xff\xf2", "audio/mpeg"),
    (b"OggS", "audio/ogg"), (b"fLaC", "audio/flac"), (b"PK\x03\x04", "application/zip"), (b"\x1f\x8b", "application/gzip"),
)  # fmt: skip
ENDINGS = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp", "svg": "image/svg+xml",
    "pdf": "application/pdf", "wav": "audio/wav", "mp3": "audio/mpeg", "ogg": "audio/ogg", "flac": "audio/flac", "zip": "application/zip", "gz": "application/gzip",
    "txt": "text/plain", "log": "text/plain", "md": "text/markdown", "csv": "text/csv", "tsv": "text/tab-separated-values", "html": "text/html", "htm": "text/html",
    "css": "text/css", "xml": "application/xml", "json": "application/json", "jsonl": "application/jsonl", "yaml": "application/yaml", "yml": "application/yaml",
    "js": "text/javascript", "ts": "text/typescript", "py": "text/x-python", "mp4": "video/mp4",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}  # fmt: skip


def content(thing: Any, name: Text, mime: Text) -> Block:
    """Returns the content of an emit frame. thing can be of any library: what it can do is found by its methods."""
    if isinstance(thing, str) and (name or mime) and not _is_file(thing):
        return _block(thing.encode("utf-8", "replace"), name, mime or _by_ending(name) or "text/plain")
    if isinstance(thing, str) and not _is_file(thing):
        return _text(thing)
    data, name, mime, uri = _bytes(thing, name, mime)
    if data is not None:
        return _block(data, name, mime, uri)
    rows = _rows(thing)
    if rows is not None:
        return _text(_table(*rows))
    if isinstance(thing, (dict, list, tuple, int, float)):
        return _text(_json(thing, indent=1))
    raise TypeError(f"a {type(thing).__name__} cannot be emitted: a text, bytes, a Blob, a path, a figure (savefig), a picture (save), or rows (a list of dicts or lists)")


def _is_file(text: str) -> bool:
    return len(text) < 1000 and "\n" not in text and "\0" not in text and os.path.isfile(text)


def _bytes(thing: Any, name: Text, mime: Text) -> tuple[bytes | None, Text, Text, str]:
    """Returns (data, name, mime, uri) of a value with bytes; data is None for other values."""
    from . import Blob

    if isinstance(thing, Blob):
        return thing.data, name or thing.name, mime or thing.mime, thing.uri
    if isinstance(thing, BYTES):
        return bytes(thing), name, mime, ""
    if isinstance(thing, str) or hasattr(thing, "__fspath__"):
        return _read(os.fspath(thing)), name or os.path.basename(os.fspath(thing)), mime, ""
    if isinstance(thing, type):
        return None, name, mime, ""
    for method, style in (("savefig", "png"), ("save", "PNG")):
        if callable(getattr(thing, method, None)):
            import io

            drawn = io.BytesIO()
            getattr(thing, method)(drawn, format=style)
            return drawn.getvalue(), name, mime, ""
    if callable(getattr(thing, "getvalue", None) or getattr(thing, "read", None)):
        data = thing.getvalue() if hasattr(thing, "getvalue") else thing.read()
        return data.encode("utf-8", "replace") if isinstance(data, str) else data, name, mime, ""
    return None, name, mime, ""


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        data = file.read(MOST + 1)
    if len(data) > MOST:
        raise _too_large(os.path.getsize(path), MOST, "")
    return data


def _block(data: bytes, name: Text, mime: Text, uri: str = "") -> Block:
    """Returns an image or audio block, or a resource for other types."""
    if len(data) > MOST:
        raise _too_large(len(data), MOST, "")
    mime = mime or _sniffed(data) or _by_ending(name) or ("text/plain" if _decoded(data) is not None else "application/octet-stream")
    kind = "image" if mime in IMAGES else "audio" if mime in AUDIO else "resource"
    name = name or ("image" if kind == "image" else "audio" if kind == "audio" else "file") + _ending(mime)
    block = {"type": kind, "mimeType": mime, "name": name, "uri": uri}
    text = _decoded(data) if kind == "resource" and _is_text(mime) else None
    if text is not None:
        return {**block, "text": text}
    import base64

    return {**block, "data": base64.b64encode(data).decode()}


def _text(text: str) -> Block:
    size = len(text.encode("utf-8", "replace"))
    if size > MOST_TEXT:
        raise _too_large(size, MOST_TEXT, 'emit it as a file: emit(text, name="report.txt")')
    return {"type": "text", "text": text or "(empty)"}


def _too_large(size: int, most: int, hint: str) -> ToolError:
    from . import ToolError

    return ToolError(
        f"{size:,} bytes are too much: at most {most:,} can be emitted at once", "limit", "sallyport.emit",
        hint or "make it smaller: fewer pixels, rows or seconds, or compressed",
    )  # fmt: skip


def _sniffed(data: bytes) -> str:
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(bytes(data[8:12]), "")
    return next((mime for magic, mime in MAGIC if data.startswith(magic)), "")


def _by_ending(name: Text) -> str:
    return ENDINGS.get((name or "").rpartition(".")[2].lower(), "") if "." in (name or "") else ""


def _ending(mime: str) -> str:
    return next(("." + ending for ending, known in ENDINGS.items() if known == mime), "")


def _is_text(mime: str) -> bool:
    return mime.startswith("text/") or mime.endswith(("+xml", "+json", "/json", "/xml", "/yaml", "/jsonl"))


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode() if b"\0" not in data else None
    except UnicodeDecodeError:
        return None


def _rows(thing: Any) -> tuple[list[Any], int] | None:
    """Returns (rows, total number of rows) of a table, None for other values."""
    total = None
    if not isinstance(thing, ROWS_OF) and callable(getattr(thing, "head", None)) and hasattr(thing, "__len__"):
        total, thing = len(thing), thing.head(ROWS)
    if callable(getattr(thing, "to_dicts", None)):
        thing = thing.to_dicts()
    elif callable(getattr(thing, "to_dict", None)):
        thing = _records(thing)
    elif callable(getattr(thing, "to_csv", None)):
        import csv

        lines = list(csv.reader(thing.to_csv().splitlines()))
        thing = [dict(zip(lines[0], line)) for line in lines[1:]] if lines else []
    rows: list[Any] = list(thing) if isinstance(thing, LISTS) else []
    if not rows or not (all(isinstance(row, dict) for row in rows) or all(isinstance(row, (list, tuple)) for row in rows)):
        return None
    return rows, total or len(rows)


def _records(frame: Any) -> Any:
    try:
        return frame.to_dict("records")
    except TypeError:  # a series, or another class
        found: Any = frame.to_dict()
        return [{"": key, "value": value} for key, value in found.items()] if isinstance(found, OBJECT) else found


def _table(rows: list[Any], total: int) -> str:
    """Returns the rows as a truncated Markdown table."""
    if isinstance(rows[0], dict):
        heads = list(dict.fromkeys(key for row in rows[:ROWS] for key in row))
        lines = ([row.get(head) for head in heads] for row in rows[:ROWS])
    else:
        heads = [""] * max(len(row) for row in rows[:ROWS])
        if rows[0] and all(isinstance(cell, str) for cell in rows[0]):
            heads, rows, total = list(rows[0]), rows[1:], total - 1
        lines = (list(row) for row in rows[:ROWS])
    more = max(0, len(heads) - COLUMNS)
    text = [_line(heads[:COLUMNS]), "|" + " --- |" * min(len(heads), COLUMNS)]
    for line in lines:
        text.append(_line(line[:COLUMNS]))
        if sum(map(len, text)) > TABLE:
            break
    left = total - (len(text) - 2)
    if left > 0:
        text.append(f"\n... and {left:,} more rows")
    if more:
        text.append(f"\n... and {more:,} more columns: {', '.join(_cell(head) for head in heads[COLUMNS:COLUMNS + 10])}")
    return "\n".join(text)


def _line(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else _json(value)
    text = " ".join(text[: 2 * CELL].split()).replace("\\", "\\\\").replace("|", "\\|")
    return text if len(text) <= CELL else text[: CELL - 1].rstrip("\\") + "…"


def _json(value: Any, indent: int | None = None) -> str:
    import json

    from . import plain

    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, separators=(",", ": " if indent else ":"), default=plain)
    except (TypeError, ValueError):
        return repr(value)
