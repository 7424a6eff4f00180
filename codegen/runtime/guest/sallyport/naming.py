"""Finds the id for `describe` of a wrapper, a package of wrappers or a function of sallyport."""

from __future__ import annotations

import types

from . import __all__


def id_of(tool: object) -> str:
    if isinstance(tool, str):
        return tool
    if isinstance(tool, types.ModuleType):
        return tool.__name__.rpartition("servers.")[2]
    home: str = getattr(tool, "__module__", None) or ""
    name: str = getattr(tool, "__name__", "")
    if home == __package__ and name in __all__:
        return "sallyport." + name
    if "servers." not in home:
        raise TypeError(f'describe takes a wrapper or "upstream.name", not a {type(tool).__name__}')
    return home.rpartition("servers.")[2].partition(".")[0] + "." + name
