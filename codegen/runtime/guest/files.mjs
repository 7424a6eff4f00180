// Synchronizes /workspace with the host: receives files before a program, and sends its changes afterwards.
// docs/reference/bridge.md describes the frames. Run as a program, it reads /workspace of a sandbox whose program was
// stopped, and writes the same frames to stdout. sallyport_files.py does the same.

import { closeSync, fstatSync, lstatSync, mkdirSync, openSync, readSync, readdirSync, readFileSync, rmdirSync, unlinkSync, writeSync, constants } from "node:fs";

const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
const ROOT = "/workspace";
const CHUNK = 1 << 20; // approximate bytes of a message
const BATCH = 500; // entries of a frame
const FOLDER = "folder";

const mark = (info) => `${info.ctimeNs}.${info.ino}.${info.size}`;

// The state of /workspace on the host: known has a mark of each path, clock is the newest change time among them.
export class Copy {
  constructor(root = ROOT) {
    Object.assign(this, { root, known: new Map(), clock: 0n, told: new Set(), queue: [], left: 0, fd: -1, failed: [] });
  }

  at(path) {
    return `${this.root}/${path}`;
  }

  // Applies a frame of the host. content receives the contents of its files; ready reports that all have arrived.
  take(frame) {
    this.queue.push(...frame.entries);
    this.work(Buffer.alloc(0));
  }

  content(data) {
    this.work(data);
  }

  get ready() {
    return this.queue.length === 0 && this.left === 0;
  }

  work(data) {
    while (this.left > 0 || this.queue.length) {
      if (this.left === 0) this.begin(this.queue.shift());
      if (this.left === 0) continue;
      if (data.length === 0) return;
      data = this.fill(data);
    }
  }

  begin(entry) {
    this.entry = entry;
    this.left = entry.gone || entry.folder ? 0 : (entry.size ?? 0);
    try {
      if (entry.gone) this.remove(entry.path);
      else if (entry.folder) this.folder(entry.path);
      else this.open(entry);
    } catch (error) {
      this.fail(error);
    }
  }

  // Writes the part of data that belongs to the open file, and returns the rest.
  fill(data) {
    const part = data.subarray(0, this.left);
    this.left -= part.length;
    try {
      if (this.fd >= 0) writeAll(this.fd, part);
      if (this.left === 0 && this.fd >= 0) this.close();
    } catch (error) {
      this.fail(error);
      unlinkSync(this.at(this.entry.path));
    }
    return data.subarray(part.length);
  }

  open({ path, executable }) {
    this.clear(path);
    this.fd = openSync(this.at(path), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, executable ? 0o755 : 0o644);
    if (this.left === 0) this.close();
  }

  close() {
    this.know(this.entry.path, fstatSync(this.fd, { bigint: true }));
    closeSync(this.fd);
    this.fd = -1;
  }

  fail(error) {
    if (this.fd >= 0) closeSync(this.fd);
    this.fd = -1;
    this.failed.push({ path: this.entry.path, skipped: `the sandbox did not take it: ${why(error)}` });
  }

  know(path, info) {
    if (info.ctimeNs > this.clock) this.clock = info.ctimeNs;
    this.known.set(path, mark(info));
  }

  remove(path) {
    const folder = this.known.get(path) === FOLDER;
    this.known.delete(path);
    try {
      (folder ? rmdirSync : unlinkSync)(this.at(path));
    } catch {} // the program has removed or replaced it
  }

  clear(path) {
    if (this.known.has(path) && this.known.get(path) !== FOLDER) this.remove(path);
  }

  folder(path) {
    this.clear(path);
    try {
      mkdirSync(this.at(path), 0o755);
    } catch (error) {
      if (error.code !== "EEXIST" || !lstatSync(this.at(path)).isDirectory()) throw error;
    }
    this.known.set(path, FOLDER);
  }

  // Reports whether the host has the current version of a file. Programs cannot set its change time.
  same(path, info) {
    return this.known.get(path) === mark(info);
  }

  // Sends the changes since the last synchronization; limit has the maximum bytes and files.
  give(limit, send, sendBytes) {
    const before = this.known;
    const out = new Frames(send, sendBytes);
    const found = new Set();
    let room = limit.bytes;
    for (const entry of this.failed.splice(0)) out.add(entry);
    const fresh = [];
    for (let [path, info, problem] of this.scan(limit.files)) {
      const known = info && info !== FOLDER && this.same(path, info);
      if (!problem && info !== FOLDER && !known && info.size > room) problem = "the workspace is full";
      if (problem) {
        if (!this.told.has(path + problem)) out.add({ path, skipped: problem });
        this.told.add(path + problem);
        continue;
      }
      if (info === FOLDER ? before.get(path) !== FOLDER : !known) {
        const sent = info === FOLDER ? out.add({ path, folder: true }) : out.file(path, info, this.at(path));
        if (sent < 0) continue;
        room -= sent;
      }
      found.add(path);
      fresh.push([path, info]);
    }
    for (const path of before.keys()) if (!found.has(path)) out.add({ path, gone: true });
    out.flush();
    this.known = new Map();
    for (const [path, info] of fresh) info === FOLDER ? this.known.set(path, FOLDER) : this.know(path, info);
    return out.sent;
  }

  // Yields path, stat result (FOLDER for a folder), and the reason not to send it; folders before their content.
  *scan(limit) {
    const left = [""];
    let seen = 0;
    while (left.length) {
      const prefix = left.pop();
      let names;
      try {
        names = readdirSync(this.at(prefix), { encoding: "buffer" });
      } catch (error) {
        if (prefix) yield [prefix.slice(0, -1), undefined, why(error)];
        continue;
      }
      for (const raw of names) {
        const name = raw.toString("utf8");
        if (++seen > limit) return yield [prefix + name, undefined, "too many files"];
        const found = Buffer.from(name).equals(raw) ? this.look(prefix + name) : [prefix + name, undefined, "its name is not UTF-8"];
        yield found;
        if (found[1] === FOLDER) left.push(`${found[0]}/`);
      }
    }
  }

  look(path) {
    try {
      const info = lstatSync(this.at(path), { bigint: true });
      if (info.isDirectory()) return [path, FOLDER];
      if (info.isFile()) return [path, Object.assign(info, { size: Number(info.size) })];
      const kind = info.isSymbolicLink() ? "a link: links stay in the sandbox" : info.isFIFO() ? "a FIFO" : info.isSocket() ? "a socket" : "a device";
      return [path, undefined, kind];
    } catch (error) {
      return [path, undefined, why(error)];
    }
  }
}

// Sends entries in frames, with the contents of many small files in one message.
class Frames {
  constructor(send, sendBytes) {
    Object.assign(this, { send, sendBytes, entries: [], parts: [], size: 0, sent: false });
  }

  // Returns the number of bytes added.
  add(entry, data) {
    this.entries.push(entry);
    if (data?.length) this.parts.push(data);
    this.size += data?.length ?? 0;
    if (this.entries.length >= BATCH || this.size >= CHUNK) this.flush();
    return data?.length ?? 0;
  }

  flush() {
    if (!this.entries.length) return;
    this.sent = true;
    this.send(JSON.stringify({ type: "files", entries: this.entries }));
    if (this.size) this.sendBytes(Buffer.concat(this.parts));
    Object.assign(this, { entries: [], parts: [], size: 0 });
  }

  // Sends a file and returns its size; -1 if it no longer exists.
  file(path, info, at) {
    const entry = { path };
    if (info.mode & 0o100n) entry.executable = true;
    let fd;
    try {
      fd = openSync(at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    } catch (error) {
      if (error.code !== "ENOENT") this.add({ path, skipped: why(error) });
      return -1;
    }
    try {
      if (info.size >= CHUNK) return this.large(entry, fd, info.size);
      const data = info.size ? read(fd, info.size) : Buffer.alloc(0);
      entry.size = data.length;
      return this.add(entry, data);
    } finally {
      closeSync(fd);
    }
  }

  large(entry, fd, size) {
    this.flush();
    this.add({ ...entry, size });
    this.flush();
    for (let left = size; left > 0; ) {
      let data = read(fd, Math.min(CHUNK, left));
      if (!data.length) data = Buffer.alloc(Math.min(CHUNK, left)); // the file has become shorter: pad it, to keep the offsets of the following ones
      this.sendBytes(data);
      left -= data.length;
    }
    return size;
  }
}

function read(fd, size) {
  const data = Buffer.allocUnsafe(size);
  return data.subarray(0, readSync(fd, data, 0, size, null));
}

export function writeAll(fd, data) {
  while (data.length) {
    try {
      data = data.subarray(writeSync(fd, data));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1); // wait for a slow reader
    }
  }
}

const WORDS = { ENOSPC: "no space left", EACCES: "not readable", EPERM: "not permitted", ENAMETOOLONG: "its name is too long" };
const why = (error) => WORDS[error.code] ?? error.code ?? "an error";

// The state of a stopped program: the paths that the host knows, and the time of the last synchronization.
class Stopped extends Copy {
  constructor(request) {
    super();
    this.since = BigInt(request.clock);
    for (const path of request.known) this.known.set(path, "");
    for (const path of request.folders) this.known.set(path, FOLDER);
  }

  same(path, info) {
    return this.known.has(path) && info.ctimeNs <= this.since;
  }

  // Yields small files first: they are the most, and time is limited.
  *scan(limit) {
    const size = ([, info]) => (info && info !== FOLDER ? info.size : -1);
    yield* [...super.scan(limit)].sort((a, b) => size(a) - size(b));
  }
}

if (process.argv[2] === "rescue") {
  const request = JSON.parse(readFileSync(0, "utf8"));
  const put = (kind, data) => {
    const head = Buffer.alloc(5);
    head[0] = kind;
    head.writeUInt32BE(data.length, 1);
    writeAll(1, Buffer.concat([head, data]));
  };
  new Stopped(request).give(request, (text) => put(1, Buffer.from(text)), (data) => put(2, data));
  put(1, Buffer.from('{"type":"done"}'));
}
