"""Implements `shape_of`: the type of a value in the syntax of signatures, by the rules of internal/jsontype."""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not imported at run time
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Optional

    Fields = dict[str, tuple[bool, Optional["Shape"]]]  # name: (optional, shape)

DEPTH, LEVELS, LOOKS, LONGEST = 12, 4, 50_000, 4000
SAMPLED, EVERY = 128, 64  # of a long list, the first SAMPLED items and every EVERY-th after them
FIELDS, LOOSE, ALIKE, SAME = 128, 16, 24, 3
ORDER = ("bool", "int", "float", "str", "list", "object", "Blob")
ONLY = (bool, int, float, str, type(None))
HOLDERS: Any = (dict, list, tuple, set, frozenset)
OBJECT: Any = dict


class Shape:
    __slots__ = ("kinds", "any", "elem", "fields", "values", "key")

    def __init__(self, *kinds: str) -> None:
        self.kinds, self.any = set(kinds), False
        self.elem: Shape | None = None
        self.values: Shape | None = None
        self.fields: Fields = {}
        self.key = ""


def shape_of(value: object) -> str:
    shape = _Reader().value(value, 0)
    text = ""
    for level in range(LEVELS, -1, -1):
        text = _text(shape, level)
        if len(text) <= LONGEST:
            return text
    return text[:LONGEST] + "..."


class _Reader:
    def __init__(self) -> None:
        self.looks = LOOKS

    def value(self, value: Any, depth: int) -> Shape:
        self.looks -= 1
        if type(value) in ONLY:
            return Shape("None" if value is None else type(value).__name__)
        if isinstance(value, HOLDERS):
            if depth == DEPTH or self.looks < 0:
                return _anything()
            return self.object(value, depth) if isinstance(value, OBJECT) else self.list(value, depth)
        if hasattr(value, "__await__"):
            return Shape(f"{type(value).__name__} (await it first)")
        for base in (str, bool, int, float):
            if isinstance(value, base):
                return Shape(base.__name__)
        return Shape(type(value).__name__)

    def list(self, values: Iterable[Any], depth: int) -> Shape:
        shape = Shape("list")
        for at, value in enumerate(values):
            if at < SAMPLED or at % EVERY == 0 and self.looks > 0:
                shape.elem = _merge(shape.elem, self.value(value, depth + 1))
        return shape

    def object(self, value: dict[Any, Any], depth: int) -> Shape:
        shape, is_map = Shape("object"), False
        for at, (key, inner) in enumerate(value.items()):
            if is_map and at >= SAMPLED and (at % EVERY or self.looks <= 0):
                continue
            inner = self.value(inner, depth + 1)
            if is_map:
                shape.values = _merge(shape.values, inner)
                continue
            shape.fields[key] = (False, inner)
            if not _is_name(key) or len(shape.fields) > FIELDS:
                is_map = True
                _become_map(shape, value)
        if not is_map and (_alike(shape.fields) or _same_objects(shape.fields)):
            _become_map(shape, value)
        return shape


def _anything() -> Shape:
    shape = Shape()
    shape.any = True
    return shape


def _become_map(shape: Shape, value: Iterable[Any] = ()) -> None:
    for _, inner in shape.fields.values():
        shape.values = _merge(shape.values, inner)
    shape.fields = {}
    kinds = {type(key).__name__ for key in value}
    shape.key = shape.key or (kinds.pop() if len(kinds) == 1 else "Any" if kinds else "str")


def _merge(a: Shape | None, b: Shape | None) -> Shape | None:
    if a is None or b is None:
        return a or b
    if a.any or b.any:
        return _anything()
    shape = Shape(*a.kinds, *b.kinds)
    if "float" in shape.kinds:
        shape.kinds.discard("int")
    shape.elem = _merge(a.elem, b.elem)
    objects = [one for one in (a, b) if "object" in one.kinds]
    if len(objects) == 1:
        shape.fields, shape.values, shape.key = objects[0].fields, objects[0].values, objects[0].key
    elif objects:
        _merge_objects(shape, a, b)
    return shape


def _merge_objects(shape: Shape, a: Shape, b: Shape) -> None:
    if a.values or b.values:
        for one in (a, b):
            if not one.values:
                _become_map(one)
        shape.values, shape.key = _merge(a.values, b.values), a.key if a.key == b.key else a.key or b.key
        return
    none: tuple[bool, Shape | None] = (True, None)
    for name in [*a.fields, *(name for name in b.fields if name not in a.fields)]:
        mine, other = a.fields.get(name, none), b.fields.get(name, none)
        shape.fields[name] = (mine[0] or other[0], _merge(mine[1], other[1]))
    if len(shape.fields) > FIELDS or len(shape.fields) > LOOSE and all(optional for optional, _ in shape.fields.values()):
        _become_map(shape)


def _alike(fields: Fields) -> bool:
    """Reports whether there are many members, all of one kind."""
    if len(fields) <= ALIKE:
        return False
    kinds: set[str] = set()
    for _, inner in fields.values():
        if inner is None:
            continue
        own = inner.kinds - {"None"}
        if inner.any or own and kinds and own != kinds:
            return False
        kinds |= own
    return True


def _same_objects(fields: Fields) -> bool:
    """Reports whether all members are objects with the same members."""
    shapes = [inner for _, inner in fields.values() if inner is not None]
    if len(shapes) < SAME or len(shapes[0].fields) < 2:
        return False
    return all(one.kinds == {"object"} and one.fields.keys() == shapes[0].fields.keys() for one in shapes)


def _is_name(key: object) -> bool:
    """Reports whether a key is a plausible member name, unlike ids, numbers, dates, addresses and sentences."""
    if not isinstance(key, str) or not key or len(key.encode("utf-8", "replace")) > 64 or key[0] in "0123456789-":
        return False
    rest = key[1:] if key[0] == "@" else key
    rest = rest[6:] if rest.startswith("odata.") else rest
    if rest.isascii():
        if not all(c.isalnum() or c in "_-$" for c in rest):
            return False
    else:
        import unicodedata

        if not all(c in "_-$" or "0" <= c <= "9" or unicodedata.category(c)[0] in "LM" for c in rest):
            return False
    return not _is_code(rest) and not _is_hex(rest) and not _is_jumble(rest)


def _is_code(text: str) -> bool:
    digits = changes = 0
    before = "_"
    for c in text:
        digit = "0" <= c <= "9"
        digits = digits + 1 if digit else 0
        if digit != ("0" <= before <= "9") and c.isascii() and c.isalnum() and before.isascii() and before.isalnum():
            changes += 1
        if digits == 4 or changes == 4:
            return True
        before = c
    return False


def _is_jumble(text: str) -> bool:
    """Reports whether text contains a random-looking word, such as a token."""
    import re

    odd = "[A-Z]{2,}|[0-9]+|(?<=[A-Z0-9])[a-z](?=[A-Z])"
    return any(len(re.findall(odd, word)) >= 3 for word in re.findall("[A-Za-z0-9]{14,}", text))


def _is_hex(text: str) -> bool:
    if len(text) < 7 or text.strip("0123456789abcdefABCDEF"):
        return False
    return len(text) >= 16 or any(c in "0123456789" for c in text)


def _text(shape: Shape | None, level: int, depth: int = 0) -> str:
    """Returns the type as text; objects deeper than level are {...}."""
    if shape is None or shape.any or not shape.kinds:
        return "Any"
    others = sorted(kind for kind in shape.kinds if kind not in ORDER and kind != "None")
    kinds = [kind for kind in ORDER if kind in shape.kinds] + others + ["None"] * ("None" in shape.kinds)
    return " | ".join(_kind(shape, kind, level, depth) for kind in kinds)


def _kind(shape: Shape, kind: str, level: int, depth: int) -> str:
    if kind == "list":
        return f"list[{_text(shape.elem, level, depth)}]"
    if kind != "object":
        return kind
    if not shape.fields:
        return f"dict[{shape.key or 'str'}, {_text(shape.values, level, depth)}]"
    if depth >= level:
        return "{...}"
    members = (f"{_name(name)}{'?' * optional}: {_text(inner, level, depth + 1)}" for name, (optional, inner) in sorted(shape.fields.items()))
    return "{" + ", ".join(members) + "}"


def _name(name: str) -> str:
    plain = name.isascii() and name.isidentifier() and not name.startswith("__") and name != "constructor"
    return name if plain else f'"{name}"'
