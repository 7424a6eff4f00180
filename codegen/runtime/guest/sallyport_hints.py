"""Suggests corrections for common mistakes with wrappers and results."""

import difflib
import errno
import os
import re
import sys

import sallyport
from sallyport.check import same_name

SHAPE = "print(shape_of(value)) shows what a value is (from sallyport import shape_of)"
HOMES = {
    "collections": "Counter OrderedDict defaultdict deque namedtuple", "datetime": "date timedelta timezone", "pathlib": "Path", "dataclasses": "asdict dataclass field",
    "functools": "cache lru_cache partial reduce wraps", "itertools": "accumulate chain combinations groupby islice permutations product zip_longest", "enum": "Enum IntEnum",
    "typing": "Any Callable Dict Iterable List Literal NamedTuple Optional Tuple TypedDict Union", "pprint": "pprint", "decimal": "Decimal", "fractions": "Fraction",
    "textwrap": "dedent shorten", "io": "BytesIO StringIO", "math": "ceil floor log sqrt", "random": "choice randint sample shuffle", "statistics": "mean median stdev",
    "time": "sleep", "uuid": "uuid4", "urllib.parse": "quote unquote urlencode urljoin urlparse", "contextlib": "contextmanager suppress", "copy": "deepcopy",
    "base64": "b64decode b64encode", "operator": "itemgetter", "concurrent.futures": "ThreadPoolExecutor as_completed", "string": "Template ascii_letters digits",
}  # fmt: skip
SHORT = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot", "sns": "seaborn", "dt": "datetime"}
ELSEWHERE = {"true": "True", "false": "False", "null": "None", "undefined": "None", "console": "print(...)", "final_answer": "print(...)"}


def hint(err):
    if isinstance(err, sallyport.ToolError):
        return of_call(err)
    if getattr(err, "hint", ""):
        return str(err.hint)
    for known, advise in ADVICE:
        if isinstance(err, known):
            return advise(err)
    return ""


def of_call(err):
    own = err.hint or (f"{err.tool}: code {err.code}" if err.tool else "")
    return own + ("; the same call may be made again" if err.retryable else "")


def memory(err):
    return "the sandbox's memory limit is reached: work on smaller pieces"


def upstreams():
    return sorted(name for name in os.listdir("/servers") if os.path.isdir("/servers/" + name))


def tools(upstream):
    names = (name[:-3] for name in os.listdir("/servers/" + upstream) if name.endswith(".py"))
    return sorted(name for name in names if name != "__init__")


def near(name, names):
    names = [str(each) for each in names]
    return next((each for each in names if same_name(each, str(name))), "") or next(iter(difflib.get_close_matches(str(name), names, 1, 0.5)), "")


def did_you_mean(name, names):
    found = near(name, names)
    return f"did you mean {found}?" if found else ""


def missing_module(err):
    parts = (err.name or "").split(".")
    if parts[0] != "servers":
        home = [up for up in upstreams() if up == parts[0]]
        return f"write: from servers.{home[0]} import ..." if home else "only Python's standard library, servers and sallyport can be imported"
    if len(parts) == 2:
        return (found := near(parts[1], upstreams())) and f"did you mean servers.{found}?" or "there are: " + ", ".join(upstreams()[:20])
    if parts[2] == "aio":
        return asynchronous(parts[1], in_line(err, r"import\s+(\w+)") or "TOOL")
    return did_you_mean(parts[2], tools(parts[1]))


def asynchronous(upstream, name):
    return f"write: from servers.{upstream} import {name}; await {name}.aio(...)"


def in_line(err, pattern):
    """Returns the matches of a pattern in the failed line of the program."""
    import linecache

    frame = innermost(err)
    found = re.search(pattern, linecache.getline(frame.tb_frame.f_code.co_filename, frame.tb_lineno))
    return found and found[1]


def innermost(err):
    """Returns the frame of the program in which an error was raised."""
    frame = own = err.__traceback__
    while frame:
        own = frame if re.fullmatch(r"program(-\d+)?\.py", frame.tb_frame.f_code.co_filename) else own
        frame = frame.tb_next
    return own


def missing_import(err):
    found = re.match(r"servers\.(\w+) has no tool (?:async_|a(?=[a-z]+_))?(\w+?)(?:_async)?;", str(err))
    if found and found[2] in tools(found[1]):
        return asynchronous(found[1], found[2])
    found = re.match(r"cannot import name '(\w+)' from '(sallyport|servers)'", str(err))
    if not found:
        return ""
    if found[2] == "servers":
        return home(found[1]) or did_you_mean(found[1], upstreams()) or "there are: " + ", ".join(upstreams()[:20])
    return home(found[1]) or did_you_mean(found[1], sallyport.__all__)


def missing_name(err):
    name = getattr(err, "name", None) or ""
    if isinstance(err, UnboundLocalError) or not name.isidentifier():
        return ""
    if name in ELSEWHERE:
        return f"in Python: {ELSEWHERE[name]}"
    if name == "datetime" and in_line(err, r"\b(datetime\.(?:now|utcnow|today|strptime|fromisoformat|fromtimestamp|combine)|datetime)\("):
        return "write: from datetime import datetime"
    if name in SHORT:
        return f"write: import {SHORT[name]} as {name}"
    if known := next((module for module, names in HOMES.items() if name in names.split()), ""):
        return f"write: from {known} import {name}"
    if name in ("servers", "sallyport") or name in getattr(sys, "stdlib_module_names", ()):
        return f"write: import {name}"
    return home(name) or did_you_mean(name, [known for known in scope(err) if not known.startswith("__")])


def home(name):
    """Returns the import of a known name, also of one written as in other languages: createIssue."""
    if name in sallyport.__all__:
        return f"write: from sallyport import {name}"
    if name in upstreams():
        return f"write: from servers import {name}"
    for each in dict.fromkeys((name, re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())):
        homes = [up for up in upstreams() if os.path.exists(f"/servers/{up}/{each}.py")]
        if homes:
            return f"write: from servers.{homes[0]} import {each}" + (f" (or from servers.{', servers.'.join(homes[1:4])})" if homes[1:] else "")
    return ""


def wrong_call(err):
    text = str(err)
    found = re.match(r"(?:[\w.<>]*\.)?(\w+)\(\) (?:got an unexpected keyword argument '(\w+)'|missing |takes |got (?:multiple values|some positional))", text)
    if found:
        return accepted(err, found[1], found[2])
    if "can't be used in 'await' expression" in text or "can't be awaited" in text:
        return "calls return their result at once: drop the await, or write await NAME.aio(...)"
    if re.search(r"awaitable is required|coroutine was expected|unhashable type: '(dict|list)'", text) and in_line(err, r"\b(asyncio\.|gather\(|create_task\()"):
        return "calls return their result at once: write NAME.aio(...) to await several"
    if text.startswith("'async for' requires"):
        return "it is no asynchronous iterator: write for in place of async for"
    if "object is not callable" in text and "module" in text:
        return "write: from servers.UPSTREAM import TOOL"
    return wrong_value(text)


def wrong_value(text):
    if "'coroutine'" in text or "type coroutine" in text:
        return "an asynchronous call has to be awaited: (await NAME.aio(...)), or call NAME(...) without .aio"
    if "'builtin_function_or_method' object" in text:
        return 'a dict has methods of these names: write value["items"], value["keys"], value["values"]'
    if text.startswith("the JSON object must be str"):
        return "results are Python values already: drop json.loads"
    if "'int' object is not subscriptable" in text or "'bool' object is not subscriptable" in text or "'float' object is not subscriptable" in text:
        return "the value has no members: " + SHAPE
    if text.startswith("string indices must be"):
        return "it is a text and no dict (going through a dict gives its keys): " + SHAPE
    if text.startswith("list indices must be"):
        return "it is a list and no dict: value[0][...], or go through it; " + SHAPE
    if "unhashable type: 'slice'" in text:
        return "it is a dict and no list, so it has no slices: " + SHAPE
    if "'NoneType' object is not" in text or "'NoneType' object has no" in text:
        return "the value is None: " + SHAPE
    return ""


def accepted(err, name, wrong):
    """Returns the parameters of a function."""
    import inspect

    function = called(err, name)
    if function is None:
        return ""
    names = list(inspect.signature(function).parameters)
    start = did_you_mean(wrong, names) + " " if wrong and near(wrong, names) else ""
    return f"{start}{name} takes: {', '.join(names)}"


def called(err, name):
    """Returns the called function, from the scope of the call, else from the imported wrappers."""
    values = list(scope(err).values())
    for module, value in list(sys.modules.items()):
        if module.startswith("servers.") and module.endswith("." + name):
            values.append(value)
    for value in values:
        for found in (value, vars(value).get(name) if hasattr(value, "__dict__") else None):
            if getattr(found, "__name__", "") == name and callable(found):
                return found
    return None


def scope(err):
    frame = err.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
    return {**frame.tb_frame.f_globals, **frame.tb_frame.f_locals}


def missing_attribute(err):
    value, name = getattr(err, "obj", None), getattr(err, "name", None)
    if isinstance(value, dict) and name in value:
        return f'results are dicts: write value["{name}"]'
    if isinstance(value, dict):
        told = members(name, value)
        return told if told.startswith("did you mean") else "it is a dict; " + told
    if isinstance(value, (list, str)):
        return f"it is a {type(value).__name__}: {SHAPE}"
    return wrong_value(str(err))


def members(name, value):
    names = [key for key in list(value)[:500] if isinstance(key, str)]
    found = near(name, names)
    told = ", ".join(key[:60] for key in names[:15]) + (", ..." if len(names) > 15 else "")
    return (f'did you mean "{found}"? ' if found else "") + (f"there are: {told}" if told else "it is empty")


def missing_key(err):
    """The error does not name the dict: finds the one in scope that lacks the member."""
    key = err.args[0] if err.args else None
    frame = err.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
    import linecache

    line = linecache.getline(frame.tb_frame.f_code.co_filename, frame.tb_lineno)
    candidates = [value for name, value in scope(err).items() if isinstance(value, dict) and not name.startswith("__") and re.search(rf"\b{re.escape(name)}\b", line)]
    candidates = [value for value in candidates if key not in value]
    return members(key, candidates[0]) if candidates and isinstance(key, str) else ""


def limit(name, hard=False):
    import resource

    return resource.getrlimit(getattr(resource, name))[hard]


def crowded():
    return f"{limit('RLIMIT_NPROC', hard=True)} processes and threads can run at once: let some end first"


def wrong_loop(err):
    if "can't start new thread" in str(err):
        return crowded()
    if "asyncio.run() cannot be called" in str(err):
        return "await works at the top level: write await main()"
    if "no running event loop" in str(err):
        return "write await at the top level: await asyncio.gather(...)"
    return ""


def no_json(err):
    return "results that are JSON are Python values already; this is a text that is none: print(text[:200])" if type(err).__name__ == "JSONDecodeError" else ""


def system(err):
    if isinstance(err, (FileNotFoundError, NotADirectoryError)):
        folder = elsewhere(str(err.filename))
        if folder:
            return folder
        names, path = sorted(os.listdir("/workspace"))[:20], str(err.filename)
        told = did_you_mean(os.path.basename(path), names) or f"in /workspace are: {', '.join(names)}" if names else "/workspace is empty"
        return told if re.match(r"[^/]|/(workspace|tmp)/", path) else "only tools reach files outside of the sandbox; " + told
    if err.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return "files can be written in /workspace and /tmp"
    if err.errno == errno.ENOSPC:
        room = os.statvfs("/workspace")
        files = f" and {room.f_files} files" if room.f_files else ""
        return f"/workspace holds {room.f_blocks * room.f_frsize >> 20} MiB{files}, /tmp {(os.statvfs('/tmp').f_blocks * room.f_frsize) >> 20} MiB: remove files, or keep less"
    if err.errno == errno.EFBIG:
        return f"a file has {limit('RLIMIT_FSIZE') >> 20} MiB at most: write several, or keep less"
    if err.errno == errno.EMFILE:
        return f"{limit('RLIMIT_NOFILE')} files can be open at once: close them, with open(...) as file"
    if err.errno == errno.EAGAIN:
        return crowded()
    if type(err).__name__ in ("gaierror", "URLError", "SSLError") or isinstance(err, ConnectionError) or err.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return "the sandbox has no network: call a tool instead, search_tools finds one"
    return ""


def elsewhere(path):
    """Returns a hint about a path that exists in other sandboxes, "" for others."""
    if found := re.match(r"(?:\./)?servers(/.*)?$", path):
        return f'the wrappers are in "/servers{found[1] or ""}"; search_tools finds tools in fewer steps'
    if found := re.match(r"/(?:mnt/data|mnt/user-data/\w+|home/\w+|content)/(.+)$", path):
        return f'files are in /workspace: "/workspace/{found[1]}"'
    return ""


def syntax(err):
    if "'return' outside function" in err.msg:
        return "end with an expression: its value comes back"
    if "'await' outside async function" in err.msg or "asynchronous comprehension outside" in err.msg:
        return "write async def, or call without await: NAME(...)"
    if re.match(r"\s*from\s+servers[\w.]*(-|\s.*\w-\w)|\s*import\s+servers[\w.]*-", err.text or ""):
        return "names have _ in place of -"
    if re.match(r"\s*(const|let|var)\b|.*(=>|===)", err.text or ""):
        return "this is no Python: for TypeScript say so in language"
    return ""


ADVICE = (
    (ModuleNotFoundError, missing_module), (ImportError, missing_import), (NameError, missing_name), (TypeError, wrong_call), (AttributeError, missing_attribute),
    (KeyError, missing_key), (MemoryError, memory), (RuntimeError, wrong_loop), (OSError, system), (SyntaxError, syntax), (ValueError, no_json),
)  # fmt: skip
