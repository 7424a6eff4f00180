"""Describes an exception of the program for a model: type, message, its own lines, a hint."""

import os
import sys
import traceback

import sallyport_hints

FORKS, TOLD = "/tmp/.sallyport-forks", 3  # a file with one byte per fault of a forked process; number of faults that are printed
MESSAGE, LINE, SKILLS, WORKSPACE = 4000, 200, "/tmp/.skills/", "/workspace/"


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
    elif isinstance(err, SyntaxError) and str(err.filename).startswith(WORKSPACE):
        place = {"file": err.filename[len(WORKSPACE) :], "line": err.lineno or 0, "source": (err.text or "").strip()[:LINE]}
        found["lines"], found["message"] = [*found["lines"], place], err.msg
    try:
        found["hint"] = sallyport_hints.hint(err)[:500]
    except Exception:
        pass
    for note in getattr(err, "__notes__", ())[:3]:
        found["message"] += f" ({str(note)[:300]})"
    cause = err.__cause__
    if cause is not None:
        found["message"] += f" (caused by {kind(cause)}: {message(cause)[:300]})"
    return found


def forget_forks():
    """Resets the count, for the next program of a session."""
    try:
        os.unlink(FORKS)
    except OSError:
        pass


def of_fork(fault):
    """Prints the fault of a forked process, which is not reported otherwise, for the first few processes."""
    try:
        with open(FORKS, "ab", 0) as told:
            told.write(b".")
            count = told.tell()
    except OSError:
        count = 0
    if count > TOLD:
        return
    at = "".join(f", line {line['line']}" for line in fault["lines"][-1:])
    more = "; those of further processes are not shown" if count == TOLD else ""
    print(f"forked process {os.getpid()}: {fault['type']}: {fault['message'][:300]}{at}{more}", file=sys.stderr)
    sys.stderr.flush()


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
    """Returns the frames in the program, in skills and in workspace files, outermost first; of more than ten the first and last five."""
    frames = []
    for frame in traceback.extract_tb(err.__traceback__):
        file = file_of(frame.filename)
        if frame.filename == name or file:
            function = "" if frame.name == "<module>" else frame.name
            frames.append({"line": frame.lineno or 0, "function": function, "source": (frame.line or "").strip()[:LINE]})
            if frame.filename != name:
                frames[-1]["file"] = file
    return frames if len(frames) <= 10 else frames[:5] + frames[-5:]


def file_of(path):
    """Returns the display name of a file that the program imports, "" for other files."""
    if path.startswith(SKILLS):
        return path[len(SKILLS) :].partition("/")[2]
    return path[len(WORKSPACE) :] if path.startswith(WORKSPACE) else ""
