"""Waits for the threads of a program after which the interpreter goes on."""

import sys
import threading
import time


def settle():
    """Returns when all threads have ended that keep an interpreter from its end, and the workers of executors have nothing to do."""
    idle = 0
    while idle < 2:  # twice: a worker may have taken something and not begun it
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon and thread not in workers():
                thread.join()
        idle = idle + 1 if quiet() else 0
        if workers():
            time.sleep(0.001)


def workers():
    """The threads of executors, with what they are to do."""
    module = sys.modules.get("concurrent.futures.thread")
    return dict(module._threads_queues) if module else {}


def quiet():
    frames, code = sys._current_frames(), workers() and sys.modules["concurrent.futures.thread"]._worker.__code__
    busy = [thread for thread, queue in workers().items() if thread.is_alive() and (not queue.empty() or thread.ident in frames and frames[thread.ident].f_code is not code)]
    return not busy
