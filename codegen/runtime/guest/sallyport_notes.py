"""Tells what a program that succeeded may have got wrong without an error: calls and generators that never ran."""

import re
import sys
import types

LAZY = re.compile(r"\byield\b|^[ \t]*(map|filter)\(|^[ \t]*\(.* for .* in ", re.MULTILINE)
LAZY_KINDS = (types.GeneratorType, types.AsyncGeneratorType, map, filter)
_told = []  # generators of earlier programs of the session


def tell(code, scope, value, loop):
    for note in found(code, scope, value, loop):
        print("note: " + note, file=sys.stderr)


def found(code, scope, value, loop):
    pending = sys.modules.get("sallyport.pending")
    if pending and pending.unawaited:
        yield f"not awaited, so not called: {listed(pending.unawaited.values())}"
    if isinstance(value, LAZY_KINDS):
        yield "the value is a generator that has not run: list(...) runs it"
    if LAZY.search(code):
        names = [*discarded(code, scope), *(name for name, each in list(scope.items()) if each is not value and fresh(each))]
        if names:
            yield f"generators that nothing went through, so they did not run: {listed(names)}"
    asyncio = sys.modules.get("asyncio")
    tasks = [task for task in asyncio.all_tasks(loop) if not task.done()] if asyncio and loop and not loop.is_closed() else ()
    if tasks:
        names = (getattr(task.get_coro(), "__name__", "task") for task in tasks)
        yield f"not awaited, so they ended with the program: {listed(names)}"


def listed(names):
    names = sorted(set(names))
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def fresh(generator):
    """Reports whether it is a generator of this program that has not started."""
    if type(generator) is not types.GeneratorType or any(generator is each for each in _told):
        return False
    import inspect

    if inspect.getgeneratorstate(generator) != inspect.GEN_CREATED:
        return False
    _told.append(generator)
    return True


def discarded(code, scope):
    """Returns the generators that are made as a statement, so that nothing can go through them."""
    import ast

    tree = ast.parse(code)
    statements = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and node is not tree.body[-1]]
    for made in statements:
        if isinstance(made, ast.GeneratorExp):
            yield "(... for ...)"
        elif isinstance(made, ast.Call) and isinstance(made.func, ast.Name):
            name = made.func.id
            flags = getattr(getattr(scope.get(name), "__code__", None), "co_flags", 0)
            if flags & 0x220 or name in ("map", "filter") and name not in scope:  # CO_GENERATOR, CO_ASYNC_GENERATOR
                yield f"{name}(...)"
