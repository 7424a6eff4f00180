"""Turns an exception of the program into what a model can repair: type, message, its own lines, a hint."""

import difflib
import os
import re
import traceback

MESSAGE, LINE = 4000, 200


def describe(err, name):
    found = {
        "type": kind(err),
        "message": message(err)[:MESSAGE],
        "lines": lines(err, name),
        "hint": "",
    }
    if isinstance(err, SyntaxError) and err.filename == name:
        text = (err.text or "").rstrip()
        found["lines"] = [{"line": err.lineno or 0, "source": text.strip()[:LINE]}]
        found["message"] = err.msg
    try:
        found["hint"] = hint(err)
    except Exception:
        pass
    cause = err.__cause__
    if cause is not None:
        found["message"] += f" (caused by {kind(cause)}: {message(cause)[:300]})"
    return found


def kind(err):
    cls = type(err)
    return cls.__qualname__ if cls.__module__ in ("builtins", "__main__", "sallyport") else f"{cls.__module__}.{cls.__qualname__}"


def message(err):
    try:
        text = str(err)
    except Exception:
        text = "(its message cannot be shown)"
    if isinstance(err, BaseExceptionGroup):
        text += ": " + "; ".join(f"{kind(sub)}: {message(sub)}" for sub in err.exceptions[:3])
    return text


def lines(err, name):
    """The frames in the program itself, outermost first; of many only the first and the last five."""
    frames = [
        {"line": frame.lineno or 0, "function": "" if frame.name == "<module>" else frame.name, "source": (frame.line or "").strip()[:LINE]}
        for frame in traceback.extract_tb(err.__traceback__)
        if frame.filename == name
    ]
    return frames if len(frames) <= 10 else frames[:5] + frames[-5:]


def hint(err):
    if getattr(err, "hint", ""):
        return str(err.hint)[:500]
    for known, advise in ((ModuleNotFoundError, missing_module), (NameError, missing_name), (TypeError, wrong_call), (MemoryError, memory)):
        if isinstance(err, known):
            return advise(err)
    return ""


def memory(err):
    return "the sandbox's memory limit is reached: work on smaller pieces"


def upstreams():
    return sorted(name for name in os.listdir("/servers") if os.path.isdir("/servers/" + name))


def tools(upstream):
    names = (name[:-3] for name in os.listdir("/servers/" + upstream) if name.endswith(".py"))
    return sorted(name for name in names if name != "__init__")


def missing_module(err):
    parts = (err.name or "").split(".")
    if parts[0] != "servers":
        home = [up for up in upstreams() if up == parts[0]]
        return f"write: from servers.{home[0]} import ..." if home else "only Python's standard library, servers and sallyport can be imported"
    if len(parts) == 2:
        near = difflib.get_close_matches(parts[1], upstreams(), 1, 0.5)
        return f"did you mean servers.{near[0]}?" if near else "there are: " + ", ".join(upstreams()[:20])
    near = difflib.get_close_matches(parts[2], tools(parts[1]), 1, 0.5)
    return f"did you mean {near[0]}?" if near else ""


def missing_name(err):
    name = getattr(err, "name", None) or ""
    if name in upstreams():
        return f"write: from servers import {name}"
    homes = [up for up in upstreams() if os.path.exists(f"/servers/{up}/{name}.py")] if name.isidentifier() else []
    return f"write: from servers.{homes[0]} import {name}" if homes else ""


def wrong_call(err):
    text = str(err)
    found = re.match(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'", text)
    if found:
        accepted = signature(err, found[1])
        near = difflib.get_close_matches(found[2], accepted, 1, 0.5)
        if accepted:
            return (f"did you mean {near[0]}? " if near else "") + f"{found[1]} takes: {', '.join(accepted)}"
    if "can't be used in 'await' expression" in text:
        return "calls return their result at once: drop the await, or write await NAME.aio(...)"
    if "object is not callable" in text and "module" in text:
        return "write: from servers.UPSTREAM import TOOL"
    return ""


def signature(err, function):
    """The parameters of the function that was called: looked up where the call stands."""
    import inspect

    frame = err.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
    scope = {**frame.tb_frame.f_globals, **frame.tb_frame.f_locals}
    for value in list(scope.values()):
        for found in (value, getattr(value, function, None)):
            if getattr(found, "__name__", "") == function and callable(found):
                return [p for p in inspect.signature(found).parameters]
    return []
