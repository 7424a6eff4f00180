"""Implements `iterate`: follows the pages of a tool, using its spec and its results.

The names are compared without case and punctuation, as codegen/pages.go does.
"""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, urlsplit

from . import ToolError, async_call, call

TYPE_CHECKING = False  # typing is not imported at run time
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from typing import Any

    from .jsontypes import JSON, Object
    from .jsontypes import Pages as Paging

    Path = tuple[str, ...]
    Level = list[tuple[Path, JSON]]

NEXT = """nextcursor nextpagetoken nexttoken endcursor nextpagecursor nextstartcursor continuationtoken continuation nextmarker scrollid odatanextlink
 nextlink nextpageuri nextpageurl nexturl nextpage nextoffset nextskiptoken next cursor""".split()
NUMBERS = ("nextpage", "nextoffset")
MORE = ("hasmore", "hasnextpage", "hasnext", "morepages", "moreavailable", "hasadditionalresults", "istruncated")
LAST = ("islast", "islastpage", "lastpage")
ITEMS = "items results data value values entries records nodes edges rows documents hits resources objects list".split()
BESIDE = "errors warnings facets links included includes columns headers fields tags labels notes suggestions".split()
DEPTH, EMPTY = 4, 50  # levels of a result that are searched; consecutive empty pages with a cursor


class Pages:
    """Iterates over the items of all pages, with `for` or `async for`. Each loop starts at the first page."""

    def __init__(self, tool: str, args: dict[str, Any], spec: str | None, most: Any) -> None:
        how: Paging | None = json.loads(spec).get("pages") if spec else None
        if not how:
            raise ToolError(f"{tool} has no parameter for pages", "invalid", tool, "call it once: what it returns is all")
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 0):
            raise TypeError(f"max_items is a whole number, not {most!r:.50}")
        self._tool, self._args, self._spec, self._how, self._most = tool, args, spec, how, most

    def __iter__(self) -> Iterator[Any]:
        walk = _Walk(self._tool, self._args, self._how, self._most)
        while walk.args is not None:
            yield from walk.take(call(self._tool, walk.args, self._spec))

    async def __aiter__(self) -> AsyncIterator[Any]:
        walk = _Walk(self._tool, self._args, self._how, self._most)
        while walk.args is not None:
            for item in walk.take(await async_call(self._tool, walk.args, self._spec)):
                yield item

    def __repr__(self) -> str:
        return f"<pages of {self._tool}; use for, list(...) or async for>"


class _Walk:
    """The state of an iteration. args holds the arguments of the next call, None at the end."""

    def __init__(self, tool: str, args: dict[str, Any], how: Paging, most: int | None) -> None:
        self.tool, self.how, self.most = tool, how, most
        self.by, self.name = how["by"], how["name"]
        self.path: Sequence[str] | None = how.get("items")
        self.before: list[JSON] | None = None
        self.pages = self.empty = self.at = 0
        self.args: dict[str, Any] | None = dict(args) if most != 0 else None
        if self.by in ("page", "offset"):
            first = how.get("first", 1) if self.by == "page" else 0
            self.at = int(args.get(self.name, first))
            if self.args is not None:
                self.args[self.name] = self.at
        self.seen: set[Any] = {args.get(self.name)}

    def take(self, result: JSON) -> list[Any]:
        """Returns the items of one page, and prepares the next call."""
        items = self.items(result)
        self.pages += 1
        self.empty = 0 if items else self.empty + 1
        following = self.onward(result, items)
        if self.most is not None:
            items = items[: self.most]
            self.most -= len(items)
        self.args = None if following is None or self.most == 0 or self.args is None else {**self.args, self.name: following}
        nodes = [item["node"] for item in items if isinstance(item, dict) and _is_edge(item)]
        return nodes if len(nodes) == len(items) else items

    def onward(self, result: JSON, items: list[JSON]) -> JSON:
        """Returns the parameter value for the next page, None if there is none."""
        if self.says_end(result):
            return None
        if self.by in ("page", "offset"):
            return self.count(result, items)
        cursor = self.last_id(items) if self.by == "last" else self.cursor(result)
        if cursor is None or cursor == "" or cursor is False or self.empty > EMPTY:
            return None
        if cursor in self.seen:
            raise self.error(f"{self.tool} answers with the cursor {str(cursor)[:60]!r} a second time: its pages go in a circle", "it may ignore " + self.name)
        self.seen.add(cursor)
        return cursor

    def count(self, result: JSON, items: list[JSON]) -> int | None:
        if not items:
            return None
        if self.pages > 1 and items == self.before:
            raise self.error(f"{self.tool} answers with the same page again: it seems to ignore {self.name}", "call it once: what it returns may be all")
        self.before = items
        told = _find(result, (self.by == "page" and NUMBERS[:1]) or NUMBERS[1:], lambda v: v is None or isinstance(v, int))
        at = told[0] if told else 0
        if at is None:
            return None
        step = 1 if self.by == "page" else len(items)
        self.at = at if isinstance(at, int) and at > self.at else self.at + step
        return self.at

    def says_end(self, result: JSON) -> bool:
        path = self.how.get("more")
        more = [_dig(result, path)] if path else _find(result, MORE, lambda v: isinstance(v, bool))
        if more and more[0] is False:
            return True
        last = _find(result, LAST, lambda v: isinstance(v, bool))
        return bool(last and last[0])

    def last_id(self, items: list[JSON]) -> JSON:
        if not items:
            return None
        last = items[-1]
        return last.get("id") if isinstance(last, dict) else last

    def cursor(self, result: JSON) -> JSON:
        path = self.how.get("next")
        found = _dig(result, path) if path else None
        if found is None:
            told = _find(result, NEXT, lambda v: isinstance(v, (str, int)) and not isinstance(v, bool) and v != "" or bool(_href(v)))
            found = told[0] if told else None
        found = _href(found) or found
        if self.by == "cursor" and isinstance(found, str) and ("?" in found) and (found[:1] == "/" or "://" in found[:9]):
            return self.of_url(found)
        return found

    def of_url(self, url: str) -> str:
        given = parse_qsl(urlsplit(url).query)
        for name, value in given:
            if _letters(name) == _letters(self.name):
                return value
        for name, value in given:
            if "token" in _letters(name) or "cursor" in _letters(name):
                return value
        return url

    def items(self, result: JSON) -> list[JSON]:
        if isinstance(result, list):
            return result
        if isinstance(result, dict):
            found = _dig(result, self.path) if self.path else None
            if not isinstance(found, list):
                self.path, found = self.look(result)
            return found
        if result is None or self.pages and isinstance(result, str):
            return []
        raise self.error(f"{self.tool} answers with {'text' if isinstance(result, str) else type(result).__name__}, not with a list",
                         f"call it yourself, with {self.name}=..., and read the text")  # fmt: skip

    def look(self, result: Object) -> tuple[Sequence[str] | None, list[JSON]]:
        """Returns the path of the list in a result, and the list: the only one or the one with a common name, the topmost first."""
        place = {str(name): at for at, name in enumerate(ITEMS)}
        for level in _levels(result):
            lists = [(path, value) for path, value in level if isinstance(value, list) and _letters(path[-1]) not in BESIDE]
            usual = sorted((place[_letters(path[-1])], path, at) for at, (path, _) in enumerate(lists) if _letters(path[-1]) in place)
            if len(lists) == 1:
                return lists[0]
            if usual:
                return lists[usual[0][2]]
            if lists:
                names = ", ".join(".".join(path) for path, _ in lists[:6])
                raise self.error(f"{self.tool} answers with several lists ({names}): which one is meant cannot be told", "call it yourself, page by page, with " + self.name)
        if self.pages == 0 and self.path is None and not self.says_nothing(result):
            raise self.error(f"there is no list in what {self.tool} answers", "call it once, and look with shape_of(result)")
        return self.path, []

    def says_nothing(self, result: Object) -> bool:
        return any(value in (None, 0, False) for value in result.values()) or not result

    def error(self, message: str, hint: str) -> ToolError:
        return ToolError(message, "failed", self.tool, hint)


def _letters(name: str) -> str:
    return "".join(c for c in name.lower() if c in "abcdefghijklmnopqrstuvwxyz0123456789")


def _is_edge(item: Object) -> bool:
    return "node" in item and set(item) <= {"node", "cursor", "__typename"}


def _href(value: JSON) -> str | None:
    href = value.get("href") if isinstance(value, dict) else None
    return href if isinstance(href, str) else None


def _dig(value: JSON, path: Sequence[str]) -> JSON:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _levels(result: JSON) -> Iterator[Level]:
    """Yields the members of a result, level by level: lists of (path, value)."""
    level: Level = [((), result)] if isinstance(result, dict) else []
    for _ in range(DEPTH):
        level = [((*path, name), inner) for path, value in level if isinstance(value, dict) for name, inner in value.items()][:2000]
        if not level:
            return
        yield level


def _find(result: JSON, names: Sequence[str], fit: Callable[[JSON], bool]) -> list[JSON]:
    """Returns [value] of the topmost member with one of names, the first name first, or []."""
    for level in _levels(result):
        found = sorted(((names.index(_letters(path[-1])), at) for at, (path, value) in enumerate(level) if _letters(path[-1]) in names and fit(value)))
        if found:
            return [level[found[0][1]][1]]
    return []
