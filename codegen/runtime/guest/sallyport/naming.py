"""Finds the id for `describe` of a wrapper, a package of wrappers or a function of sallyport."""

import types

from . import __all__


def id_of(tool):
    if isinstance(tool, str):
        return tool
    if isinstance(tool, types.ModuleType):
        return tool.__name__.rpartition("servers.")[2]
    home = getattr(tool, "__module__", None) or ""
    if home == __package__ and getattr(tool, "__name__", "") in __all__:
        return "sallyport." + tool.__name__
    if "servers." not in home:
        raise TypeError(f'describe takes a wrapper or "upstream.name", not a {type(tool).__name__}')
    return home.rpartition("servers.")[2].partition(".")[0] + "." + tool.__name__
