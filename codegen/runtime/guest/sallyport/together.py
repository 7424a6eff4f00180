"""Implements `parallel`: runs functions concurrently in threads, including the caller's.

A thread that waits for a nested parallel works on it meanwhile, so that nesting and
a lack of threads cannot cause a deadlock.
"""

from __future__ import annotations

import contextvars
import sys
import threading

TYPE_CHECKING = False  # typing is not imported at run time
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

HELPERS = 32  # threads of all parallels together, besides the callers
_helpers = threading.Semaphore(HELPERS)
_USE = "parallel(lambda: f(1), lambda: f(2)) or parallel([lambda x=x: f(x) for x in xs])"


class _Run:
    def __init__(self, functions: Sequence[Callable[[], Any]], limit: int, errors: bool, settle: Callable[[Awaitable[Any]], Any]) -> None:
        self.todo = iter(enumerate(functions))
        self.results: list[Any] = [None] * len(functions)
        self.limit, self.errors, self.settle = min(limit, len(functions)), errors, settle
        self.failed: dict[int, BaseException] = {}
        self.started, self.stopped = 0, False
        self.lock, self.context = threading.Lock(), contextvars.copy_context()

    def work(self) -> None:
        while True:
            with self.lock:
                position, function = (None, None) if self.stopped else next(self.todo, (None, None))
                if position is None or function is None:
                    return
                self.started += 1
            try:
                self.results[position] = self.one(function)
            except BaseException as err:
                self.fail(position, err)
            finally:
                function = None

    def one(self, function: Callable[[], Any]) -> Any:
        result = self.context.copy().run(function)
        return self.settle(result) if hasattr(result, "__await__") else result

    def fail(self, position: int, err: BaseException) -> None:
        with self.lock:
            self.results[position] = self.failed[position] = err
            if not self.errors or not isinstance(err, Exception):
                self.stopped = True

    def help(self) -> None:
        try:
            self.work()
        finally:
            _helpers.release()

    def run(self) -> list[Any]:
        """Runs the functions in up to limit threads, and returns the results or raises the first error."""
        threads: list[threading.Thread] = []
        while len(threads) < self.limit - 1 and _helpers.acquire(blocking=False):
            thread = threading.Thread(target=self.help)
            try:
                thread.start()
            except RuntimeError:  # no more threads in the sandbox: the existing ones do the work
                _helpers.release()
                break
            threads.append(thread)
        self.work()
        for thread in threads:
            thread.join()
        if self.stopped and self.failed:
            raise self.first()
        return self.results

    def first(self) -> BaseException:
        """Returns the first error in order, with a note about the others."""
        worst = {at: err for at, err in self.failed.items() if not (self.errors and isinstance(err, Exception))}
        err, failed, left = worst[min(worst)], len(self.failed), len(self.results) - self.started
        if failed > 1 or left:
            note = f"parallel: {failed} of {len(self.results)} functions failed, {left} were not started"
            setattr(err, "__notes__", [*getattr(err, "__notes__", ()), note])  # Python 3.9 has no add_note
        return err


def run(functions: Sequence[Any], limit: Any, errors: bool) -> list[Any]:
    job = _Run(_listed(functions, limit), limit, errors, _settle)
    asyncio: Any = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return job.run()
    # Functions must not run in the thread of a running event loop, where they could not use asyncio.run.
    done = _Thread(job.run)
    done.thread.join()
    return done.outcome()


async def run_async(functions: Sequence[Any], limit: Any, errors: bool) -> list[Any]:
    import asyncio

    loop = asyncio.get_running_loop()

    async def settled(awaitable: Awaitable[Any]) -> Any:
        return await awaitable

    def settle(awaitable: Awaitable[Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(settled(awaitable), loop).result()

    functions = [_call(f) if hasattr(f, "__await__") else f for f in _members(functions)]
    job = _Run(_listed(functions, limit), limit, errors, settle)
    over = asyncio.Event()
    done = _Thread(job.run, lambda: loop.call_soon_threadsafe(over.set))
    try:
        await over.wait()
    finally:
        job.stopped = True  # canceled: start no further function
    return done.outcome()


def _call(awaitable: Awaitable[Any]) -> Callable[[], Awaitable[Any]]:
    return lambda: awaitable


def _settle(awaitable: Awaitable[Any]) -> Any:
    """Runs an awaitable in a new event loop of this thread and returns its result."""
    import asyncio

    async def settled() -> Any:
        return await awaitable

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(settled())
    finally:
        loop.close()


class _Thread:
    """Runs a function in a thread of its own, and then another one."""

    def __init__(self, function: Callable[[], list[Any]], after: Callable[[], object] = lambda: None) -> None:
        self.function, self.after, self.context = function, after, contextvars.copy_context()
        self.result: list[Any] = []
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self.body)
        self.thread.start()

    def body(self) -> None:
        try:
            self.result = self.context.run(self.function)
        except BaseException as err:
            self.error = err
        self.after()

    def outcome(self) -> list[Any]:
        """Returns the result of the function, or raises its error."""
        if self.error is not None:
            raise self.error
        return self.result


def _members(functions: Sequence[Any]) -> list[Any]:
    if len(functions) == 1 and hasattr(functions[0], "__iter__") and not callable(functions[0]) and not hasattr(functions[0], "__await__"):
        return list(functions[0])
    return list(functions)


def _listed(functions: Sequence[Any], limit: Any) -> list[Any]:
    functions = _members(functions)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise TypeError(f"limit says how many run at once: a whole number from 1 on, not {limit!r:.50}")
    for at, function in enumerate(functions, 1):
        if not callable(function):
            raise _unfit(functions, at)
    return functions


def _unfit(functions: list[Any], at: int) -> TypeError:
    wrong = functions[at - 1]
    if not hasattr(wrong, "__await__"):
        return TypeError(f"parallel takes functions, not results, and number {at} is of type {type(wrong).__name__}: {_USE}")
    for one in functions:
        if hasattr(one, "close"):
            one.close()  # avoids a warning that it was never awaited
    return TypeError(f"parallel takes functions, and number {at} is a coroutine: parallel(lambda: f(1), ...), or await parallel.aio(f.aio(1), ...)")
