"""Prepares an interpreter for a snapshot that is copied and resumed: loads common modules, and resets state that must differ."""

import gc
import importlib
import os
import sys
import time

USUAL = """
    ast asyncio base64 bisect collections concurrent.futures.thread contextlib copy csv dataclasses datetime decimal difflib enum fractions functools
    glob hashlib heapq inspect io itertools json linecache logging math operator os pathlib pprint queue random re shutil signal statistics string
    struct tempfile textwrap threading time traceback types typing unicodedata urllib.parse uuid zlib
    sallyport_fault sallyport_hints sallyport_notes sallyport.bridge sallyport.check sallyport.media sallyport.naming sallyport.pages sallyport.pending sallyport.saved sallyport.shapes sallyport.skills sallyport.together
""".split()
# A program that exercises the parser, the compiler and asyncio once.
FIRST = """
import json, re, asyncio
class A:
    async def f(self, x=[y for y in range(3)]):
        return {**{"a": f"{x!r:>4}"}}
json.loads(json.dumps(re.findall("a", "banana")))
await A().f()
"""


def up(run):
    """Loads common modules, and runs a program."""
    for name in USUAL:
        try:
            importlib.import_module(name)
        except ImportError:  # an interpreter without it
            pass
    run(FIRST, {"__name__": "first", "__builtins__": __builtins__}, "first.py")
    sys.modules["linecache"].clearcache()
    gc.collect()
    gc.freeze()  # current objects are never garbage


def zygote(settings):
    """Returns a function that runs the zygote and returns in each forked process, with the descriptor of its bridge."""
    import ctypes

    library = ctypes.PyDLL(f"/opt/sallyport/zygote-{os.uname().machine}.so")
    library.zygote_serve.restype = ctypes.c_long
    given = ctypes.c_char_p(settings.encode())
    end_loop()
    gc.collect()
    gc.freeze()
    return lambda: library.zygote_serve(given)


def end_loop():
    """Closes the event loop: all forks would share its sockets. Each begins one of its own when it needs one."""
    import asyncio
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asyncio.get_event_loop_policy().get_event_loop().close()
        asyncio.set_event_loop_policy(None)


def wait(connect, path):
    """Returns connect() as soon as the socket accepts connections."""
    while True:
        if os.path.exists(path):
            try:
                return connect()
            except (ConnectionRefusedError, PermissionError, FileNotFoundError):  # it is about to be opened
                pass
        time.sleep(0.003)


def refresh():
    """Resets state that would be equal in every copy: random generators and folder caches."""
    sys.modules["random"].seed()
    sys.modules["tempfile"]._name_sequence = None
    sys.modules["uuid"]._node = None
    if "multiprocessing.process" in sys.modules:
        process = sys.modules["multiprocessing.process"]
        process.current_process().authkey = os.urandom(32)
    importlib.invalidate_caches()
    for path in ("/workspace", "/servers"):
        sys.path_importer_cache.pop(path, None)
