"""Finds the package `skills`: each of its modules is asked for when a program first imports it.

What the host sends is written to a folder, so that a skill is a package like any
other: its own files, its lines in errors, and data beside it.
"""

import importlib.machinery
import importlib.util
import itertools
import os
import sys

_folders = itertools.count(1)
_folder = None


def find(name):
    short = name.partition(".")[2]
    if not short:
        return _root(name)
    if "." in short:
        return None  # a file of a skill: where the skill is
    here = os.path.join(_folder, short)
    code = _fetch(short, here)
    return importlib.util.spec_from_file_location(name, os.path.join(here, code), submodule_search_locations=[here])


def _root(name):
    global _folder
    _folder = f"/tmp/.skills/{next(_folders)}/skills"
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [_folder]
    return spec


def _fetch(short, here):
    import binascii
    import json

    from . import ToolError, call

    try:
        sent = json.loads(call("sallyport.import_skill", {"name": short, "language": "python"}))
    except ToolError as err:
        if err.code != "not_found":
            raise ImportError(err.message + (f"; {err.hint}" if err.hint else ""), name="skills." + short) from None
        raise ModuleNotFoundError(err.message + (f"; {err.hint}" if err.hint else ""), name="skills." + short) from None
    for path, text in sent["files"].items():
        _write(os.path.join(here, path), text.encode())
    for path, text in sent["data"].items():
        _write(os.path.join(here, path), binascii.a2b_base64(text))
    return sent["code"]


def _write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def forget():
    """Lets the next program load skills anew: they may have other versions by then."""
    for name in [name for name in sys.modules if name == "skills" or name.startswith("skills.")]:
        del sys.modules[name]
