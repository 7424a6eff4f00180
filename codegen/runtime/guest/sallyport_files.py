"""Synchronizes /workspace with the host: receives files before a program, and sends its changes afterwards.

docs/reference/bridge.md describes the frames. As a program of its own it reads /workspace
of a sandbox whose program was stopped, and writes the same frames to stdout.
Its name is one that no module of a program has.
"""

import os
import stat
import sys

ROOT = "/workspace"
CHUNK = 1 << 20  # approximate bytes of a message
BATCH = 500  # entries of a frame
FOLDER = ()
KINDS = {
    stat.S_IFLNK: "a link: links stay in the sandbox", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


class Copy:
    """The state of /workspace on the host: `known` has a mark of each path, `clock` is the newest change time among them."""

    def __init__(self, root=ROOT):
        self.root, self.known, self.clock, self.told, self.failed = root, {}, 0, set(), []

    def take(self, frame, receive):
        """Applies a frame of the host; receive returns the messages with contents."""
        content = _Content(receive)
        for entry in frame["entries"]:
            path = entry["path"]
            try:
                if entry.get("gone"):
                    self.remove(path)
                elif entry.get("folder"):
                    self.folder(path)
                else:
                    self.write(path, entry, content)
            except OSError as err:
                self.failed.append({"path": path, "skipped": f"the sandbox did not take it: {err.strerror}"})
            content.skip()

    def at(self, path):
        return self.root + "/" + path

    def remove(self, path):
        mark = self.known.pop(path, None)
        try:
            (os.rmdir if mark == FOLDER else os.unlink)(self.at(path))
        except OSError:
            pass  # the program has removed or replaced it

    def folder(self, path):
        self.clear(path)
        try:
            os.mkdir(self.at(path), 0o755)
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(self.at(path)).st_mode):
                raise
        self.known[path] = FOLDER

    def write(self, path, entry, content):
        content.left = entry.get("size", 0)
        self.clear(path)
        fd = os.open(self.at(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o755 if entry.get("executable") else 0o644)
        try:
            while content.left:
                _write(fd, content.read())
            self.known[path] = self.mark(os.fstat(fd))
        except OSError:
            os.unlink(self.at(path))
            raise
        finally:
            os.close(fd)

    def clear(self, path):
        if path in self.known and self.known[path] != FOLDER:
            self.remove(path)

    def mark(self, info):
        self.clock = max(self.clock, info.st_ctime_ns)
        return (info.st_ctime_ns, info.st_ino, info.st_size)

    def same(self, path, info):
        """Reports whether the host has the current version of a file. Programs cannot set its change time."""
        return self.known.get(path) == (info.st_ctime_ns, info.st_ino, info.st_size)

    def give(self, limit, send, send_bytes):
        """Sends the changes since the last synchronization; limit has the maximum bytes and files."""
        found, out = {}, _Frames(send, send_bytes)
        room = limit["bytes"]
        for entry in self.failed:
            out.add(entry)
        self.failed = []
        for path, info, problem in self.scan(limit["files"]):
            if problem is None and info is not FOLDER and not self.same(path, info) and info.st_size > room:
                problem = "the workspace is full"
            if problem:
                if (path, problem) not in self.told:
                    self.told.add((path, problem))
                    out.add({"path": path, "skipped": problem})
            elif info is FOLDER:
                found[path] = FOLDER
                if self.known.get(path) != FOLDER:
                    out.add({"path": path, "folder": True})
            else:
                if not self.same(path, info):
                    sent = out.file(path, info, self.at(path))
                    if sent is None:
                        continue
                    room -= sent
                found[path] = self.mark(info)
        for path in self.known:
            if path not in found:
                out.add({"path": path, "gone": True})
        out.flush()
        self.known = found
        return out.sent

    def scan(self, limit):
        """Yields path, stat result (FOLDER for a folder), and the reason not to send it; folders before their content."""
        left, seen = [""], 0
        while left:
            prefix = left.pop()
            try:
                with os.scandir(self.at(prefix)) as entries:
                    for entry in entries:
                        seen += 1
                        if seen > limit:
                            yield prefix + entry.name, None, "too many files"
                            return
                        path, info, problem = self.look(prefix + entry.name, entry)
                        yield path, info, problem
                        if info is FOLDER and not problem:
                            left.append(path + "/")
            except OSError as err:
                if prefix:
                    yield prefix[:-1], None, err.strerror

    def look(self, path, entry):
        try:
            path.encode()
            info = entry.stat(follow_symlinks=False)
        except UnicodeEncodeError:
            return os.fsencode(path).decode("utf-8", "backslashreplace"), None, "its name is not UTF-8"
        except OSError as err:
            return path, None, err.strerror
        if stat.S_ISDIR(info.st_mode):
            return path, FOLDER, None
        if stat.S_ISREG(info.st_mode):
            return path, info, None
        return path, None, KINDS.get(stat.S_IFMT(info.st_mode), "no file")


class _Content:
    """The messages with contents that follow a frame of the host."""

    def __init__(self, receive):
        self.receive, self.data, self.left = receive, b"", 0

    def read(self):
        if not self.data:
            self.data = self.receive()
            if not isinstance(self.data, bytes):
                raise ConnectionError("the gateway closed the bridge")
        part, self.data = self.data[: self.left], self.data[self.left :]
        self.left -= len(part)
        return part

    def skip(self):
        while self.left:
            self.read()


class _Frames:
    """Sends entries in frames, with the contents of many small files in one message."""

    def __init__(self, send, send_bytes):
        self.send, self.send_bytes, self.entries, self.parts, self.size, self.sent = send, send_bytes, [], [], 0, False

    def add(self, entry, data=b""):
        self.entries.append(entry)
        if data:
            self.parts.append(data)
            self.size += len(data)
        if len(self.entries) >= BATCH or self.size >= CHUNK:
            self.flush()

    def flush(self):
        if not self.entries:
            return
        self.sent = True
        self.send({"type": "files", "entries": self.entries})
        if self.size:
            self.send_bytes(b"".join(self.parts))
        self.entries, self.parts, self.size = [], [], 0

    def file(self, path, info, at):
        """Sends a file and returns its size; None if it no longer exists."""
        entry = {"path": path}
        if info.st_mode & 0o100:
            entry["executable"] = True
        try:
            fd = os.open(at, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as err:
            if os.path.lexists(at):
                self.add({"path": path, "skipped": err.strerror})
            return None
        try:
            if info.st_size >= CHUNK:
                return self.large(entry, fd, info.st_size)
            data = os.read(fd, CHUNK) if info.st_size else b""
            entry["size"] = len(data)
            self.add(entry, data)
            return len(data)
        finally:
            os.close(fd)

    def large(self, entry, fd, size):
        self.flush()
        entry["size"] = left = size
        self.add(entry)
        self.flush()
        while left:  # pads a file that has become shorter, to keep the offsets of the following ones
            data = os.read(fd, min(CHUNK, left)) or bytes(min(CHUNK, left))
            self.send_bytes(data)
            left -= len(data)
        return size


def free(keep):
    """Closes files that the program left open, if it has reached the limit."""
    try:
        for fd in [os.open(ROOT, os.O_RDONLY) for _ in range(3)]:
            os.close(fd)
    except OSError:
        os.closerange(3, keep)
        os.closerange(keep + 1, 4096)


def _write(fd, data):
    while data:
        data = data[os.write(fd, data) :]


class _Stopped(Copy):
    """The state of a stopped program: the paths that the host knows, and the time of the last synchronization."""

    def __init__(self, request):
        Copy.__init__(self)
        self.since = int(request["clock"])
        self.known = {path: None for path in request["known"]}
        for path in request["folders"]:
            self.known[path] = FOLDER

    def same(self, path, info):
        return path in self.known and info.st_ctime_ns <= self.since

    def scan(self, limit):
        """Yields small files first: they are the most, and time is limited."""
        return sorted(Copy.scan(self, limit), key=lambda found: found[1].st_size if found[1] else -1)


def rescue():
    import json

    request = json.loads(sys.stdin.buffer.read())

    def put(kind, data):
        _write(1, bytes((kind,)) + len(data).to_bytes(4, "big") + data)

    def send(frame):
        put(1, json.dumps(frame).encode())

    _Stopped(request).give(request, send, lambda data: put(2, data))
    send({"type": "done"})


if __name__ == "__main__":
    rescue()
