"""Boots a Python execution: connects the bridge, waits for programs, runs them, reports.

Runs as `python3 -I -S -B guest.py` inside the sandbox. The host does not trust
this code: a program can change it, with effect only on itself.
"""

import sys

ROOT, BRIDGE, NAME = "/opt/sallyport", "/run/sallyport/bridge.sock", "program.py"
sys.path.append(ROOT)

import builtins
import importlib.util
import io
import itertools
import os
import re
import resource
import threading
import time
import types

import sallyport
import sallyport_files


class Servers:
    """Finds the packages `servers` and `skills` before sys.path, so that no file of a program can shadow them."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "servers":
            return importlib.util.spec_from_file_location(name, "/servers/__init__.py", submodule_search_locations=["/servers"])
        if name[:6] == "skills" and name[6:7] in ("", "."):
            from sallyport import skills

            return skills.find(name)
        return None


class Lines(io.TextIOWrapper):
    """Flushes each line, but at most 20 per 0.1 seconds, since a write costs as much as a hundred lines."""

    since, left = 0, 0

    def write(self, text):
        size = super().write(text)
        if "\n" in text:
            now = time.monotonic()
            if now - self.since > 0.1:
                self.since, self.left = now, 20
            if self.left:
                self.left -= 1
                self.flush()
        return size


def prepare():
    sys.meta_path.insert(0, Servers)
    sys.path.remove(ROOT)
    sys.path += ["/workspace", *sys.argv[1:], ROOT]  # the environment's packages; ROOT comes last, so that it hides no file of a program
    sys.dont_write_bytecode = True
    builtins.exit = builtins.quit = leave_program
    builtins.help = show_help
    os.environ.pop("MALLOC_ARENA_MAX", None)  # only for this process, which has read it
    os.environ.update(PIP_NO_INDEX="1", PIP_BREAK_SYSTEM_PACKAGES="1", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_USER="0")  # pip fails here, and briefly so
    threading.stack_size(2 << 20)  # address space is limited, and many threads must fit into it
    sys.stdout = sys.__stdout__ = Lines(sys.stdout.detach(), encoding="utf-8", errors="backslashreplace")
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")


def leave_program(code=None):
    """Ends the program: exit(), quit()."""
    raise SystemExit(code)


def show_help(*things):
    """Prints the description of tools, or else Python's own documentation."""
    from sallyport import describe, naming

    for thing in things or ("sallyport.search_tools",):
        try:
            text = describe(naming.id_of(thing))
        except TypeError:
            import pydoc

            text = pydoc.render_doc(thing, renderer=pydoc.plaintext)
        print(text)


def fresh():
    """Creates the module in which programs run and returns its namespace."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"], sys.argv = main, [NAME]
    return main.__dict__


def run(code, scope, name):
    """Runs the program and returns the value of its last expression, awaited if it is a coroutine."""
    import ast
    import linecache

    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    evaluate(compile(tree, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), scope)
    if last is None:
        return None
    value = evaluate(compile(ast.Expression(last.value), name, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), scope)
    return wait(value) if hasattr(type(value), "send") and hasattr(type(value), "__await__") else value


_loop = None


def evaluate(code, scope):
    value = eval(code, scope)
    return wait(value) if code.co_flags & 0x80 else value  # CO_COROUTINE: there is an await at the top level


def wait(coroutine):
    global _loop
    import asyncio

    if _loop is None or _loop.is_closed():  # one loop for all programs, so that tasks survive
        _loop = begun(asyncio) or asyncio.new_event_loop()
        asyncio.set_event_loop(_loop)
    return _loop.run_until_complete(coroutine)


def begun(asyncio):
    """Returns the event loop that the program already uses, None if there is none."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            loop = asyncio.get_event_loop_policy().get_event_loop()
        except RuntimeError:
            return None
    return None if loop.is_closed() else loop


def finish(kept):
    """Does the work of an interpreter's exit: joins threads, runs exit functions, flushes buffers."""
    if kept:  # the interpreter keeps running: idle threads stay, exit functions do not run yet
        if threading.active_count() > 1:
            import sallyport_rest

            sallyport_rest.settle()
    else:
        import atexit

        threading._shutdown()  # ends idle executor threads, then waits for the others
        atexit._run_exitfuncs()
    flush()


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


def shown(value, limit):
    """Describes a value for the host: as JSON if possible, else its repr; truncated to limit characters."""
    import json

    if value is None:
        return None
    kind = "json"
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (TypeError, ValueError, RecursionError):
        kind, text = "text", represented(value)
    if len(text) > limit:
        return {"kind": "text", "text": (value if isinstance(value, str) else text)[:limit], "size": len(text.encode("utf-8", "replace"))}
    return {"kind": kind, "text": text, "size": len(text.encode("utf-8", "replace"))}


def represented(value):
    """Returns repr(value). It does not fail: a broken repr must not fail a successful program."""
    try:
        return repr(value)
    except MemoryError:
        raise
    except Exception as err:
        return f"<{type(value).__name__} that cannot be shown: {type(err).__name__}: {err}>"


def main():
    prepare()
    bridge, files = connect(), sallyport_files.Copy()
    scope, limits = fresh(), resource.getrlimit(resource.RLIMIT_AS)
    for number in itertools.count(1):
        job = receive(bridge, files)
        if job is None:
            break
        if number == 1:
            os.chdir("/workspace")  # may be mounted since the start
        # Each program has a name of its own, so that tracebacks show its own lines.
        done = execute(job, scope, of_file(job["file"], scope) if job.get("file") else NAME if number == 1 else f"program-{number}.py")
        try:
            bridge.rest()
            if "workspace" in job:
                hand_over(bridge, files, job["workspace"])
            bridge.send(done)
        except ConnectionError:  # the sandbox is being stopped: /workspace stays readable while this process runs
            time.sleep(2)
            os._exit(1)
        if not job.get("keep"):
            break
        resource.setrlimit(resource.RLIMIT_AS, limits)
    os._exit(0)


def receive(bridge, files):
    """Receives the files before a program, and returns the program's frame; None when the gateway has closed the bridge."""
    frame, clock = bridge.heard(), files.clock
    while frame and frame["type"] == "files":
        files.take(frame, bridge.heard)
        frame = bridge.heard()
    if files.clock != clock:
        bridge.send({"type": "copied", "clock": str(files.clock)})
    if frame:
        importlib.invalidate_caches()
        if "skills" in sys.modules:
            from sallyport import skills

            skills.forget()
        bridge.go(frame.get("frame"))
    return frame


def hand_over(bridge, files, limit):
    """Sends the program's changes in /workspace, on a best-effort basis."""
    give_room()
    sallyport_files.free(bridge._sock.fileno())
    if files.give(limit, bridge.send, lambda data: bridge._send(0x82, data)):
        bridge.send({"type": "copied", "clock": str(files.clock)})


def connect():
    """Connects to the bridge. If its socket does not exist yet, warms up and waits for it, or for the fork of a zygote."""
    zygote = os.environ.pop("SALLYPORT_ZYGOTE", "")
    if not zygote and os.path.exists(BRIDGE):
        return sallyport.open_bridge(BRIDGE)
    import sallyport_warm

    sallyport_warm.up(run)
    serve = sallyport_warm.zygote(zygote) if zygote else None
    os.write(1, b"ready\n")
    bridge = sallyport.open_bridge(serve()) if serve else sallyport_warm.wait(lambda: sallyport.open_bridge(BRIDGE), BRIDGE)
    sallyport_warm.refresh()
    return bridge


def begin(prelude, scope):
    """Runs the module of names that programs have without imports; returns its namespace."""
    if not prelude:
        return {}
    module = types.ModuleType("prelude")
    exec(compile(prelude, "<prelude>", "exec"), module.__dict__)
    scope.update((name, value) for name, value in vars(module).items() if name[0] != "_")
    return vars(module)


def execute(job, scope, name):
    """Runs one program and returns the frame with its outcome."""
    pid, done, kept = os.getpid(), {"type": "done"}, job.get("keep", False)
    if kept and os.path.exists("/tmp/.sallyport-forks"):
        import sallyport_fault

        sallyport_fault.forget_forks()
    try:
        prelude = begin(job.get("prelude"), scope)
        scope.update(job.get("variables", {}))
        forget_pending()
        provide(job["code"], scope)
        value = run(prelude.get("_source", str)(job["code"]), scope, name)
        finish(kept)
        if "_answer" in prelude:
            value = prelude["_answer"](scope)
        done["value"] = shown(value, job["value_limit"])
        if sallyport.refused:
            tool, message = sallyport.refused[0]
            done["refused"] = {"count": len(sallyport.refused), "tool": tool, "message": message}
        if os.getpid() == pid:
            remark(job["code"], scope, value)
    except SystemExit as stop:
        done["exit"] = leave(stop, kept)
    except BaseException as err:
        give_room()
        import sallyport_fault

        done["fault"] = sallyport_fault.describe(err, name)
        if os.getpid() != pid:
            sallyport_fault.of_fork(done["fault"])
    flush()
    if os.getpid() != pid:  # a fork that ran to the end of the program: only the first process reports
        os._exit(1 if "fault" in done else done.get("exit", 0))
    return done


def forget_pending():
    """Drops the calls of an earlier program of the session that it has not awaited, or that were refused."""
    sallyport.refused.clear()
    if "sallyport.pending" in sys.modules:
        sys.modules["sallyport.pending"].forget()


USUAL = re.compile(
    r"(?<![\w.])(asyncio|base64|collections|copy|csv|functools|hashlib|io|itertools|json|math|operator|os|pathlib|random|re|statistics|string|sys|textwrap|time|uuid)\."
)


def provide(code, scope):
    """Sets the usual modules that a program names, since many programs forget their import."""
    for name in set(USUAL.findall(code)):
        if name not in scope:
            scope[name] = importlib.import_module(name)


def remark(code, scope, value):
    """Prints what a program that succeeded may have got wrong, unless the program has used up its files or memory."""
    try:
        import sallyport_notes

        sallyport_notes.tell(code, scope, value, _loop)
    except (OSError, MemoryError):
        pass


_folder = []


def of_file(file, scope):
    """Prepares to run a program as a file in /workspace, which imports current modules from its folder; returns its name."""
    name = "/workspace/" + file
    for module, loaded in list(sys.modules.items()):
        if str(getattr(loaded, "__file__", None)).startswith("/workspace/"):
            del sys.modules[module]
    if _folder and sys.path[:1] == _folder:
        del sys.path[0]
    _folder[:] = [os.path.dirname(name)]
    sys.path.insert(0, _folder[0])
    sys.argv, scope["__file__"] = [name], name
    return name


def give_room():
    """Raises the soft memory limit to the hard one, so that a MemoryError can be reported."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def leave(stop, kept):
    try:
        finish(kept)
    except BaseException:
        pass
    if stop.code is None or isinstance(stop.code, int):
        return (stop.code or 0) & 0xFF
    print(stop.code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    main()
