"""Stands in for the guest runtime in tests: a call answers with what it was asked."""
import importlib
import sys
import types

OMIT = object()
Blob = bytes


def call(tool, args, spec=None):
    return {"tool": tool, "args": {k: v for k, v in args.items() if v is not OMIT}}


async def async_call(tool, args, spec=None):
    return call(tool, args, spec)


def bound(function, args, kwargs):
    return None  # runtime/guest/sallyport/check.py is tested with sandboxes


def package(name, names):
    class Lazy(types.ModuleType):
        def __getattribute__(self, attr):
            if attr in names:
                module = importlib.import_module(name + "." + names[attr])
                return getattr(module, attr, module)
            return super().__getattribute__(attr)

    sys.modules[name].__class__ = Lazy
