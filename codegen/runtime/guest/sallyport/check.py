"""Checks the arguments of a call before they leave the sandbox, by the types in its wrapper's spec (codegen/spec.go).

Refuses only what the upstream's schema refuses too; patterns, ranges and the like are the gateway's matter.
check.mjs is the same for TypeScript, line by line: a wrong call gets the same words in both.
"""

from __future__ import annotations

import json

from . import ToolError, refused

TYPE_CHECKING = False  # typing is not imported at run time
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .jsontypes import JSON, Member, Object, Spec, Type, Wrapper

FAULTS, STEPS, DEPTH = 3, 20_000, 60  # limits of reported faults, checked values and nesting; values beyond them pass
TEXT, VALUE, CHOICES = 300, 40, 10

_OBJECT: Any = dict  # so that checkers do not infer unknown types of what is in it
_specs: dict[str, Wrapper] = {}


def refuse(args: Object, text: str) -> tuple[str, str]:
    """Returns the faults of args, "" if there are none, and the tool's signature.

    Takes out of args each None for an optional parameter that cannot be None, and gives parameters their own names.
    """
    spec = _parsed(text)
    types = spec.get("args")
    if types is None:
        return "", ""
    check = Check(spec.get("defs", ()))
    check.rename(types, args)
    for name, (t, needed) in check.members(types).items():
        if not needed and args.get(name, 0) is None and not check.fits(t, None):
            del args[name]
    if check.fits(types, args):
        return "", ""
    check.steps = STEPS
    check.explain(types, args, "")
    found = [line(fault, TEXT) for fault in check.faults[:FAULTS]] or ["they do not fit"]
    more = "; and more" if len(check.faults) > FAULTS else ""
    return "wrong arguments: " + "; ".join(found) + more, spec["sig"]


def refusal(wrong: str, tool: str, signature: str) -> ToolError:
    """Returns the error of a call that does not leave the sandbox."""
    refused.append((tool, wrong))
    return ToolError(wrong, "invalid", tool, signature)


def bound(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, dict[str, Any], str] | None:
    """Returns the tool, the arguments and the spec of a call that does not fit the parameters of its wrapper as it is; None for a function without spec.

    A wrapper has the parameters of its spec, in their order. Its last global name is that of the spec.
    """
    code = function.__code__
    names, positional = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], code.co_varnames[: code.co_argcount]
    text = function.__globals__.get(code.co_names[-1])
    if type(text) is not str:
        return None
    spec = _parsed(text)
    check, types = Check(spec.get("defs", ())), spec.get("args", {"o": {}, "x": "*"})
    own: dict[str, str] = dict(zip(names, check.members(types)))
    only: Any = args[0] if len(args) == 1 else None
    if isinstance(only, _OBJECT) and not kwargs and set(only) <= {*own, *own.values()}:
        args, kwargs = (), only  # as in TypeScript
    wrong = ""
    if len(args) > len(positional):
        told = f"only {', '.join(positional)} can be positional" if positional else "none can be positional"
        wrong = f"{len(args)} positional arguments, {told}" + (f": write {names[len(positional)]}=..." if len(names) > len(positional) else "")
    given: dict[str, Any] = {own[name] if name in own else name: value for name, value in zip(positional, args)}
    for name, value in kwargs.items():
        if own.get(name, name) in given:
            wrong = f"{name} is given twice"
        given[own.get(name, name)] = value
    tool = spec["sig"].partition("(")[0]
    if wrong:
        raise refusal("wrong arguments: " + wrong, tool, spec["sig"]) from None
    check.rename(types, given)
    return tool, given, text


def _parsed(text: str) -> Wrapper:
    spec = _specs.get(text)
    if spec is None:
        spec = _specs[text] = json.loads(text)
    return spec


class Check:
    def __init__(self, defs: Sequence[Type]) -> None:
        self.defs, self.steps = defs, STEPS
        self.faults: list[str] = []

    def resolve(self, t: Type) -> str | Spec:
        for _ in range(DEPTH):
            if not isinstance(t, int):
                return t
            t = self.defs[t]
        return "*"

    def members(self, t: Spec) -> dict[str, Member]:
        """Returns the members of an object type: their types, and whether they are required."""
        found = t.get(".")
        if found is None:
            found = t["."] = {}
            for name, typ in t.get("o", {}).items():
                last = name[-1:]
                found[name[:-1] if last in ("?", "!") else name] = (typ, last != "?")
        return found

    def rename(self, t: Spec, args: dict[str, Any]) -> None:
        """Gives arguments the parameters' own names in place of other forms of them, perPage for per_page, except where that could mean something else."""
        members = self.members(t)
        for name in list(args) if t.get("x") is None else ():
            own = [known for known in members if same_name(known, name)] if name not in members else ()
            if len(own) == 1 and own[0] not in args:
                args[own[0]] = args.pop(name)

    def fits(self, t: Type, v: JSON, depth: int = 0) -> bool:
        self.steps -= 1
        if self.steps < 0 or depth > DEPTH:
            return True
        t = self.resolve(t)
        if isinstance(t, str):
            return t == "*" or kind(v) in KINDS[t] and (t != "i" or not isinstance(v, float) or v.is_integer())
        if "o" in t:
            return isinstance(v, dict) and self.fits_members(t, v, depth + 1)
        if "e" in t:
            return among(t["e"], v)
        if "u" in t:
            return any(self.fits(arm, v, depth + 1) for arm in t["u"])
        if "m" in t:
            return isinstance(v, dict) and all(self.fits(t["m"], item, depth + 1) for item in v.values())
        return isinstance(v, list) and all(self.fits(self.element(t, i), item, depth + 1) for i, item in enumerate(v))

    def fits_members(self, t: Spec, v: Object, depth: int) -> bool:
        members, more = self.members(t), t.get("x")
        for name, (typ, needed) in members.items():
            if name in v:
                if not self.fits(typ, v[name], depth):
                    return False
            elif needed:
                return False
        if more == "*":
            return True
        return all(name in members or more is not None and self.fits(more, item, depth) for name, item in v.items())

    def element(self, t: Spec, i: int) -> Type:
        """Returns the type of a list element."""
        first = t.get("t", ())
        return first[i] if i < len(first) else t.get("l", "*")

    def explain(self, t: Type, v: JSON, path: str, name: str = "") -> None:
        """Collects the faults of the invalid value v."""
        self.steps -= 1
        if self.steps < 0 or len(self.faults) > FAULTS or path.count(".") + path.count("[") > DEPTH:
            return
        t = self.resolve(t)
        if isinstance(t, dict) and "u" in t and self.explain_union(t, v, path, name):
            return
        if isinstance(t, dict) and "o" in t and isinstance(v, dict):
            self.explain_members(t, v, path)
        elif isinstance(t, dict) and "m" in t and isinstance(v, dict):
            for key, item in v.items():
                self.explain_part(t["m"], item, path, key)
        elif isinstance(t, dict) and ("l" in t or "t" in t) and isinstance(v, list):
            for i, item in enumerate(v):
                self.explain_part(self.element(t, i), item, path, i)
        else:
            self.fault(path, f"expected {self.name(t)}, got {got(v)}{self.advice(t, v, name)}")

    def explain_part(self, t: Type, v: JSON, path: str, key: str | int) -> None:
        if not self.fits(t, v):
            self.explain(t, v, step(path, key), key if isinstance(key, str) else "")

    def explain_members(self, t: Spec, v: Object, path: str) -> None:
        members, more = self.members(t), t.get("x")
        meant: set[str] = set()
        unknown = [name for name in v if name not in members]
        absent = [name for name, (_, needed) in members.items() if needed and name not in v]
        for name in unknown[: FAULTS + 1] if more is None else ():
            near = nearest(name, [known for known in members if known not in v]) or nearest(name, members)
            meant.add(near)
            what = "member" if path else "parameter"
            choice = f": did you mean {key(near)}?" if near else f", it has {', '.join(map(key, list(members)[:CHOICES]))}" if path and members else ""
            self.fault(path, f"unknown {what} {quote(name)}{choice}")
        missing = [name for name in absent if name not in meant]
        if missing:
            wrote = ", ".join(map(key, unknown[:5])) if more is not None else ""
            said = ", ".join(f"{key(name)}: {self.name(members[name][0], 1)}" for name in missing[:CHOICES])
            self.fault(path, f"missing {said}" + (f" (you wrote {wrote})" if wrote else ""))
        for name, item in v.items():
            if name in members:
                self.explain_part(members[name][0], item, path, name)
            elif more is not None:
                self.explain_part(more, item, path, name)

    def explain_union(self, t: Spec, v: JSON, path: str, name: str) -> bool:
        """Explains the faults of the intended arm. Returns False if no arm accepts the kind of v."""
        arms = [arm for arm in self.arms(t) if kind(v) in self.kinds(arm)]
        if isinstance(v, dict) and len(arms) > 1:
            tag, values = self.tag(arms)
            if tag and tag not in v:
                self.fault(path, f"missing {key(tag)}: {self.name({'e': values})}")
                return True
            if tag and not among(values, v[tag]):
                self.explain({"e": values}, v[tag], step(path, tag))
                return True
            arms = [arm for arm in arms if not tag or isinstance(arm, dict) and among(self.literals(self.members(arm)[tag][0]), v[tag])]
        best: list[str] | None = None
        for arm in arms:
            saved = self.faults
            self.faults = []
            self.explain(arm, v, path, name)
            found, self.faults = self.faults, saved
            if best is None or len(found) < len(best):
                best = found
        self.faults += best or []
        return bool(best)

    def tag(self, arms: Sequence[str | Spec]) -> tuple[str, list[JSON]]:
        """Returns the discriminating member of object types, and its possible values."""
        objects = [arm for arm in arms if isinstance(arm, dict) and "o" in arm]
        if len(objects) == len(arms):
            for name in self.members(objects[0]):
                found = [self.members(arm).get(name, ("*", False)) for arm in objects]
                lists = [self.literals(t) for t, needed in found if needed]
                if len(lists) == len(arms) and all(lists):
                    return name, [value for values in lists for value in values]
        return "", []

    def literals(self, t: Type) -> list[JSON]:
        t = self.resolve(t)
        return t.get("e", []) if isinstance(t, dict) else []

    def kinds(self, t: str | Spec) -> str:
        """Returns the kinds of values that a type accepts."""
        if isinstance(t, str):
            return KINDS.get(t, "snbzlo")
        if "e" in t:
            return "".join(map(kind, t["e"]))
        return "o" if "o" in t or "m" in t else "l"

    def fault(self, path: str, text: str) -> None:
        self.faults.append(f"{path}: {text}" if path else text)

    def advice(self, t: Type, v: JSON, name: str) -> str:
        """Returns the correction of a value if it is obvious."""
        if isinstance(v, str):
            near = nearest(v, [value for arm in self.arms(t) for value in self.literals(arm) if isinstance(value, str)])
            if near and (len(v) > 3 or fold(near) == fold(v)):  # codes of two or three letters are too short to suggest others
                return f": did you mean {quote(near)}?"
            parsed = parse(v)
            if parsed is not None and self.fits(t, parsed):
                return f": pass the {NAMES[kind(parsed)]} itself, not its JSON" if kind(parsed) in "lo" else f": write {show(parsed)}"
        if kind(v) == "n" and self.fits(t, show(v)):
            return f": write {quote(show(v))}"
        if not self.is_tuple(t) and self.fits(t, [v]):
            return f": write [{show(v)}]" if not isinstance(v, (dict, list)) else ": put it into a list"
        if isinstance(v, list) and len(v) == 1 and self.fits(t, v[0]):
            return ": take it out of the list"
        if isinstance(v, dict) and name in v and self.fits(t, v[name]):
            return f": pass the {key(name)} in it"
        return ""

    def arms(self, t: Type) -> list[str | Spec]:
        """Returns the arms of a union, including nested and recursive unions; for other types the type itself."""
        found: list[str | Spec] = []
        left: list[Type] = [t]
        known: set[int] = set()
        for each in left:
            arm = self.resolve(each)
            if isinstance(arm, str) or "u" not in arm:
                found.append(arm)
            elif id(arm) not in known:
                known.add(id(arm))
                left += arm["u"]
        return found

    def is_tuple(self, t: Type) -> bool:
        return any(isinstance(arm, dict) and "t" in arm for arm in self.arms(t))

    def name(self, t: Type, level: int = 0) -> str:
        """Formats a type as in a signature."""
        return line(self.write(self.resolve(t), level), 220)

    def write(self, t: str | Spec, level: int) -> str:
        if isinstance(t, str):
            return TYPES[t]
        if "e" in t:
            return choice([show(value) for value in t["e"]])
        if "u" in t:
            return " | ".join(self.write(arm, level) for arm in self.arms(t)[:CHOICES])
        if level > 2:
            return "..."
        if "t" in t:
            return "[" + ", ".join(self.write(self.resolve(arm), level + 1) for arm in t["t"][:CHOICES]) + "]"
        if "l" in t:
            elem = self.resolve(t["l"])
            return LIST(self.write(elem, level + 1))
        if "m" in t:
            return MAP(self.write(self.resolve(t["m"]), level + 1))
        members = [f"{key(name)}{'' if needed else '?'}: {self.write(self.resolve(typ), level + 1)}" for name, (typ, needed) in self.members(t).items()]
        return "{" + ", ".join(members[:CHOICES] + ["..."] * (len(members) > CHOICES)) + "}"


# The parts that differ from check.mjs: names and literals of the language.
KINDS = {"s": "s", "i": "n", "n": "n", "b": "b", "z": "z"}
NAMES = {"s": "str", "n": "float", "b": "bool", "z": "None", "l": "list", "o": "dict"}
TYPES = {"s": "str", "i": "int", "n": "float", "b": "bool", "z": "None", "*": "Any"}
LIST, MAP = "list[{}]".format, "dict[str, {}]".format


_KINDS: dict[type, str] = {str: "s", int: "n", float: "n", bool: "b", list: "l", dict: "o"}


def kind(v: JSON) -> str:
    return _KINDS.get(type(v), "z")


def among(values: Sequence[JSON], v: JSON) -> bool:
    if isinstance(v, str):
        return v in values
    return kind(v) in "nb" and any(kind(value) == kind(v) and same(value, v) for value in values)


def same(a: Any, b: Any) -> bool:
    try:
        return float(a) == float(b)  # JSON numbers compare by value
    except OverflowError:
        return False


def parse(text: str) -> Any:
    try:
        value = json.loads(text) if len(text) < 100_000 else None
    except (ValueError, RecursionError):
        return None
    return None if type(value) is float and value - value != 0 else value  # NaN and infinity cannot be sent


def got(v: JSON) -> str:
    """Describes an invalid value."""
    if isinstance(v, list):
        return f"list of {len(v)}" if v else "empty list"
    if isinstance(v, dict):
        return "dict {" + ", ".join(map(key, list(v)[:5])) + (", ..." if len(v) > 5 else "") + "}"
    if type(v) in (str, int, float):
        return f"{type(v).__name__} {show(v)}"
    return show(v)


def show(v: JSON) -> str:
    if isinstance(v, str):
        return quote(v)
    return str(v) if type(v) in (bool, type(None)) else line(json.dumps(v), VALUE)


def quote(text: str) -> str:
    return clean(json.dumps(text if len(text) <= VALUE else text[:VALUE] + "...", ensure_ascii=False))


def clean(text: str) -> str:
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def choice(values: Sequence[str]) -> str:
    shown: list[str] = []
    size = 0
    for value in values:
        size += len(value) + 1
        if size > 190 and shown:
            return "|".join(shown) + f"|{len(values) - len(shown)} more"
        shown.append(value)
    return "|".join(shown)


def key(name: str) -> str:
    return name if name.isascii() and name.isidentifier() and len(name) <= 64 else quote(name)


def step(path: str, part: str | int) -> str:
    if isinstance(part, int):
        return f"{path}[{part}]"
    shown = key(part)
    return (f"{path}[{shown}]" if path else shown) if shown != part else f"{path}.{part}" if path else part


def line(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def nearest(word: str, names: Iterable[str]) -> str:
    """Returns the probably intended name, "" if none is similar. Same algorithm as internal/suggest in Go."""
    best, cost, folded = "", 1 << 30, fold(word)
    for name in names if folded else ():
        other = fold(name)
        short, long = sorted((folded, other), key=len)
        new = 1 << 30
        if short == long:
            new = 0
        elif len(short) >= 4 and 2 * len(short) >= len(long) and short in long:
            new = 1
        elif len(long) - len(short) <= max(1, len(folded) // 3):
            new = distance(folded, other)
        if new < cost or new == cost and name < best:
            best, cost = name, new
    return best if cost <= max(1, len(folded) // 3) else ""


def same_name(a: str, b: str) -> bool:
    folded = fold(a)
    return folded != "" and folded == fold(b)


def fold(text: str) -> str:
    return "".join(c for c in text[:64].lower() if c not in "-_. ")


def distance(a: str, b: str) -> int:
    before, last, row = [0] * (len(b) + 1), list(range(len(b) + 1)), [0] * (len(b) + 1)
    for i in range(1, len(a) + 1):
        row[0] = i
        for j in range(1, len(b) + 1):
            row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                row[j] = min(row[j], before[j - 2] + 1)
        before, last, row = last, row, before
    return last[len(b)]
