"""Finds the package `skills`. Each of its modules is requested on first import.

The host sends the files, which are written to a folder, so that a skill is an
ordinary package with files, source lines in errors, and data.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import itertools
import os
import sys

_folders = itertools.count(1)
_folder = ""


def find(name: str) -> importlib.machinery.ModuleSpec | None:
    short = name.partition(".")[2]
    if not short:
        return _root(name)
    if "." in short:
        return None  # a submodule, found in the skill's folder
    here = os.path.join(_folder, short)
    code = _fetch(short, here)
    return importlib.util.spec_from_file_location(name, os.path.join(here, code), submodule_search_locations=[here])


def _root(name: str) -> importlib.machinery.ModuleSpec:
    global _folder
    _folder = f"/tmp/.skills/{next(_folders)}/skills"
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [_folder]
    return spec


def _fetch(short: str, here: str) -> str:
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


def _write(path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def forget() -> None:
    """Makes the next program reload skills, which may have new versions."""
    for name in [name for name in sys.modules if name == "skills" or name.startswith("skills.")]:
        del sys.modules[name]
