"""Waits for the threads of a program in an interpreter that keeps running."""

import sys
import threading
import time


def settle():
    """Returns when all non-daemon threads have ended and the workers of executors are idle."""
    idle = 0
    while idle < 2:  # twice: a worker may have taken a task and not started it
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon and thread not in workers():
                thread.join()
        idle = idle + 1 if quiet() else 0
        if workers():
            time.sleep(0.001)


def workers():
    """Returns the threads of executors, with their queues."""
    module = sys.modules.get("concurrent.futures.thread")
    return dict(module._threads_queues) if module else {}


def quiet():
    frames, code = sys._current_frames(), workers() and sys.modules["concurrent.futures.thread"]._worker.__code__
    busy = [thread for thread, queue in workers().items() if thread.is_alive() and (not queue.empty() or thread.ident in frames and frames[thread.ident].f_code is not code)]
    return not busy
