"""Gets an interpreter ready that is frozen, copied and woken later: what programs need is loaded, what must differ is made anew."""

import gc
import importlib
import os
import sys
import time

USUAL = """
    ast asyncio base64 bisect collections concurrent.futures.thread contextlib copy csv dataclasses datetime decimal difflib enum fractions functools
    glob hashlib heapq inspect io itertools json linecache logging math operator os pathlib pprint queue random re shutil signal statistics string
    struct tempfile textwrap threading time traceback types typing unicodedata urllib.parse uuid zlib
    sallyport_fault sallyport_hints sallyport.bridge sallyport.check sallyport.media sallyport.naming sallyport.pages sallyport.saved sallyport.shapes sallyport.skills sallyport.together
""".split()
# A program that uses what most do: the parser, the compiler and asyncio have run once then.
FIRST = """
import json, re, asyncio
class A:
    async def f(self, x=[y for y in range(3)]):
        return {**{"a": f"{x!r:>4}"}}
json.loads(json.dumps(re.findall("a", "banana")))
await A().f()
"""


def up(run):
    """Loads what programs usually need, and runs one."""
    for name in USUAL:
        try:
            importlib.import_module(name)
        except ImportError:  # an interpreter without it
            pass
    run(FIRST, {"__name__": "first", "__builtins__": __builtins__}, "first.py")
    sys.modules["linecache"].clearcache()
    gc.collect()
    gc.freeze()  # what is there now is never garbage


def wait(connect, path):
    """Returns what connect does, as soon as the socket is there and open."""
    while True:
        if os.path.exists(path):
            try:
                return connect()
            except (ConnectionRefusedError, PermissionError, FileNotFoundError):  # it is about to be opened
                pass
        time.sleep(0.003)


def refresh():
    """Makes anew what would be the same in every copy: what is random, and what was seen of folders."""
    sys.modules["random"].seed()
    sys.modules["tempfile"]._name_sequence = None
    sys.modules["uuid"]._node = None
    if "multiprocessing.process" in sys.modules:
        process = sys.modules["multiprocessing.process"]
        process.current_process().authkey = os.urandom(32)
    importlib.invalidate_caches()
    for path in ("/workspace", "/servers"):
        sys.path_importer_cache.pop(path, None)
