// The guest's end of the bridge (docs/reference/bridge.md).

import { Socket, createConnection } from "node:net";
import { tell } from "./api.mjs";
import { parse } from "./exact.mjs";
import { writeAll } from "./files.mjs";

const EMPTY = Buffer.alloc(0);
const FRAME = 16 << 20; // bytes of a frame, unless the host sets another limit
const OVER = "the program that made this call has ended";

// The guest's end of the websocket (RFC 6455, client side, text frames).
export class Bridge {
  // path is that of a socket, or the descriptor of a connection. With patient set, it retries until the socket is open.
  constructor(path, patient) {
    Object.assign(this, { path, patient });
    this.calls = new Map();
    this.next = 1;
    this.left = EMPTY; // the incomplete start of a frame
    this.body = undefined; // the partly read payload of a long frame
    this.parts = [];
    this.open = false;
    this.onMessage = () => {};
    this.onContent = () => {}; // receives binary messages
    this.over = false; // no program is running: calls fail
    this.limit = FRAME;
    this.connect();
  }

  connect() {
    const buffer = Buffer.allocUnsafeSlow(256 << 10);
    const callback = (size) => this.take(buffer.subarray(0, size));
    const onread = { buffer, callback };
    this.socket = typeof this.path === "number" ? new Socket({ fd: this.path, onread }) : createConnection({ path: this.path, onread });
    this.socket.on("close", () => this.lose());
    this.socket.on("error", () => this.patient && !this.open && setTimeout(() => this.connect(), 3));
    this.socket.write(
      "GET /v1 HTTP/1.1\r\nHost: sallyport\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2FsbHlwb3J0LWd1ZXN0IQ==\r\n\r\n",
    );
  }

  // Processes a chunk. Its buffer is reused, so data that is retained is copied.
  take(chunk) {
    while (chunk.length) {
      if (this.body) {
        chunk = this.fill(chunk);
        continue;
      }
      const data = this.left.length ? Buffer.concat([this.left, chunk]) : chunk;
      this.left = EMPTY;
      const used = this.open ? this.step(data) : this.shake(data);
      if (!used) this.left = Buffer.from(data);
      chunk = used ? data.subarray(used) : EMPTY;
    }
  }

  fill(chunk) {
    const { bytes, first, filled } = this.body;
    const size = chunk.copy(bytes, filled);
    this.body.filled += size;
    if (this.body.filled === bytes.length) {
      this.body = undefined;
      this.frame(first, bytes);
    }
    return chunk.subarray(size);
  }

  shake(data) {
    const end = data.indexOf("\r\n\r\n");
    if (end < 0) return 0;
    if (!data.subarray(0, end).includes(" 101 ")) throw new Error("the gateway refused the bridge");
    this.open = true;
    return end + 4;
  }

  // Reads one frame, or the head of a long one, and returns the number of bytes used; 0 if they are incomplete.
  step(data) {
    if (data.length < 2) return 0;
    let size = data[1] & 0x7f;
    const head = size === 126 ? 4 : size === 127 ? 10 : 2;
    if (data.length < head) return 0;
    if (head === 4) size = data.readUInt16BE(2);
    if (head === 10) size = Number(data.readBigUInt64BE(2));
    if (data.length < head + size) {
      this.body = { bytes: Buffer.allocUnsafeSlow(size), first: data[0], filled: 0 };
      return head;
    }
    this.frame(data[0], data.subarray(head, head + size));
    return head + size;
  }

  frame(first, payload) {
    const opcode = first & 0x0f;
    if (opcode === 8) this.socket.destroy();
    if (opcode === 9) this.write(0x8a, Buffer.from(payload));
    if (opcode >= 3) return;
    if (opcode) this.binary = opcode === 2;
    if (!(first & 0x80)) return void this.parts.push(Buffer.from(payload));
    const data = this.parts.length ? Buffer.concat([...this.parts, payload]) : payload;
    this.parts = [];
    if (this.binary) this.onContent(data);
    else this.receive(parse(data.toString("utf8")));
  }

  receive(message) {
    if (message.type === "ping") return this.send('{"type":"pong"}');
    const waiting = this.calls.get(message.id);
    if (!waiting) return this.onMessage(message);
    if (message.type === "progress") return tell(waiting, message);
    this.calls.delete(message.id);
    if (this.calls.size === 0 && !this.over) this.socket.unref();
    waiting.resolve(message);
  }

  lose() {
    if (this.patient && !this.open) return;
    this.lost = true;
    this.fail("the gateway closed the bridge");
  }

  // Fails the pending calls of a finished program, and rejects calls until the next program.
  rest() {
    this.over = true;
    this.fail(OVER);
    this.socket.ref();
  }

  // Allows calls, each in a frame of at most limit bytes.
  go(limit) {
    this.over = false;
    this.limit = limit || FRAME;
    this.socket.unref();
  }

  fail(message) {
    const calls = this.calls;
    this.calls = new Map();
    for (const waiting of calls.values()) waiting.resolve({ error: { kind: "internal", message } });
  }

  // A zero mask is valid: masks only protect proxies, which a Unix socket does not have.
  // Frames of one turn of the event loop are written together.
  write(opcode, payload) {
    const size = payload.length;
    const head = Buffer.alloc(size < 126 ? 6 : size < 65536 ? 8 : 14);
    head[0] = opcode;
    head[1] = 0x80 | (size < 126 ? size : size < 65536 ? 126 : 127);
    if (head.length === 8) head.writeUInt16BE(size, 2);
    if (head.length === 14) head.writeBigUInt64BE(BigInt(size), 2);
    if (!this.corked) {
      this.corked = true;
      this.socket.cork();
      process.nextTick(() => this.flush());
    }
    this.socket.write(size < 4096 ? Buffer.concat([head, payload]) : head);
    if (size >= 4096) this.socket.write(payload);
  }

  flush() {
    if (this.corked) this.socket.uncork();
    this.corked = false;
  }

  send(text) {
    this.write(0x81, Buffer.from(text, "utf8"));
  }

  // Writes synchronously; no write may be pending. Used for files, which may not fit into memory, and at exit.
  writeNow(opcode, payload) {
    const head = Buffer.alloc(14);
    head[0] = opcode;
    head[1] = 0xff;
    head.writeBigUInt64BE(BigInt(payload.length), 2);
    writeAll(this.socket._handle.fd, Buffer.concat([head, payload]));
  }

  // args is JSON text and must not be parsed again, since it may have numbers beyond JavaScript's precision.
  call(tool, args, listener) {
    return this.ask("call", `"tool":${JSON.stringify(tool)},"args":${args}${listener ? ',"progress":true' : ""}`, tool, listener);
  }

  // Sends a frame with a new id and returns a promise of its answer frame.
  ask(type, members, tool, listener) {
    if (this.lost || this.over) return Promise.resolve({ error: { kind: "internal", message: this.over ? OVER : "the gateway closed the bridge" } });
    return new Promise((resolve) => {
      const id = this.next++;
      const frame = Buffer.from(`{"type":"${type}","id":${id},${members}}`, "utf8");
      if (frame.length > this.limit) return resolve({ error: tooLarge(frame.length, this.limit) });
      this.calls.set(id, { resolve, tool, listener });
      this.socket.ref();
      this.write(0x81, frame);
    });
  }
}

// Returns the error for a frame beyond the limit, for which the host would end the program.
function tooLarge(size, limit) {
  const message = `the arguments are ${(size / 2 ** 20).toFixed(1)} MiB, and a call can have ${limit / 2 ** 20} MiB`;
  return { kind: "limit", message, hint: "split them over several calls, or pass a path or a URL instead of the content" };
}
