// Boots a TypeScript execution: connects the bridge, waits for the program (one
// JavaScript module, compiled on the host), runs it, reports. Nothing in here is
// trusted by the host: a program can change all of it, for itself only.

import { mkdirSync, writeFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { createConnection } from "node:net";
import { dirname } from "node:path";
import { Writable } from "node:stream";
import { inspect } from "node:util";
import * as api from "./api.mjs";
import { describe } from "./fault.mjs";
import { Copy, writeAll } from "./files.mjs";

const BRIDGE = "/run/sallyport/bridge.sock";
const { Blob, tell, unanswered, use } = api;
const MODULE = "/tmp/.program/program.mjs";

// The guest's end of the websocket (RFC 6455, client side, text frames).
class Bridge {
  constructor(path) {
    this.calls = new Map();
    this.next = 1;
    this.chunks = [];
    this.size = 0;
    this.parts = [];
    this.open = false;
    this.onMessage = () => {};
    this.onContent = () => {}; // gets what binary messages hold
    this.socket = createConnection({ path });
    this.socket.on("data", (chunk) => this.take(chunk));
    this.socket.on("close", () => this.lose());
    this.socket.on("error", () => this.lose());
    this.socket.write(
      "GET /v1 HTTP/1.1\r\nHost: sallyport\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2FsbHlwb3J0LWd1ZXN0IQ==\r\n\r\n",
    );
  }

  take(chunk) {
    this.chunks.push(chunk);
    this.size += chunk.length;
    while (this.step());
  }

  buffered() {
    if (this.chunks.length > 1) this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0] ?? Buffer.alloc(0);
  }

  drop(count) {
    const rest = this.buffered().subarray(count);
    this.chunks = rest.length ? [rest] : [];
    this.size = rest.length;
    this.want = 0;
    return true;
  }

  step() {
    if (this.size < (this.want ?? 2)) return false;
    const data = this.buffered();
    if (!this.open) {
      const end = data.indexOf("\r\n\r\n");
      if (end < 0) return false;
      if (!data.subarray(0, end).includes(" 101 ")) throw new Error("the gateway refused the bridge");
      this.open = true;
      return this.drop(end + 4);
    }
    if (data.length < 2) return false;
    let size = data[1] & 0x7f;
    let head = 2;
    if (size === 126) head = 4;
    if (size === 127) head = 10;
    if (data.length < head) return false;
    if (head === 4) size = data.readUInt16BE(2);
    if (head === 10) size = Number(data.readBigUInt64BE(2));
    if (data.length < head + size) {
      this.want = head + size; // do not join chunks again before all of it is here
      return false;
    }
    const payload = data.subarray(head, head + size);
    this.frame(data[0], payload);
    return this.drop(head + size);
  }

  frame(first, payload) {
    const opcode = first & 0x0f;
    if (opcode === 8) this.socket.destroy();
    if (opcode === 9) this.write(0x8a, Buffer.from(payload));
    if (opcode >= 3) return;
    if (opcode) this.binary = opcode === 2;
    this.parts.push(Buffer.from(payload));
    if (!(first & 0x80)) return;
    const data = Buffer.concat(this.parts);
    this.parts = [];
    if (this.binary) this.onContent(data);
    else this.receive(JSON.parse(data.toString("utf8")));
  }

  receive(message) {
    const waiting = this.calls.get(message.id);
    if (!waiting) return this.onMessage(message);
    if (message.type === "progress") return tell(waiting, message);
    this.calls.delete(message.id);
    if (this.calls.size === 0) this.socket.unref();
    waiting.resolve(message);
  }

  lose() {
    const calls = this.calls;
    this.calls = new Map();
    this.lost = true;
    for (const waiting of calls.values()) waiting.resolve({ error: { kind: "internal", message: "the gateway closed the bridge" } });
  }

  // A mask of zeros is a mask: masks protect proxies, and there is none on a Unix socket.
  write(opcode, payload) {
    const size = payload.length;
    const head = Buffer.alloc(size < 126 ? 6 : size < 65536 ? 8 : 14);
    head[0] = opcode;
    head[1] = 0x80 | (size < 126 ? size : size < 65536 ? 126 : 127);
    if (head.length === 8) head.writeUInt16BE(size, 2);
    if (head.length === 14) head.writeBigUInt64BE(BigInt(size), 2);
    this.socket.write(head);
    this.socket.write(payload);
  }

  send(text) {
    this.write(0x81, Buffer.from(text, "utf8"));
  }

  // Writes at once, where nothing waits to be written: files would not fit into memory, and at the end there is no later.
  writeNow(opcode, payload) {
    const head = Buffer.alloc(14);
    head[0] = opcode;
    head[1] = 0xff;
    head.writeBigUInt64BE(BigInt(payload.length), 2);
    writeAll(this.socket._handle.fd, Buffer.concat([head, payload]));
  }

  // args is JSON already: what it holds beyond what JavaScript's numbers can must not be parsed again.
  call(tool, args, listener) {
    return this.ask("call", `"tool":${JSON.stringify(tool)},"args":${args}${listener ? ',"progress":true' : ""}`, tool, listener);
  }

  // Sends a frame under an id of its own and returns a promise of the one that answers.
  ask(type, members, tool, listener) {
    if (this.lost) return Promise.resolve({ error: { kind: "internal", message: "the gateway closed the bridge" } });
    return new Promise((resolve) => {
      const id = this.next++;
      this.calls.set(id, { resolve, tool, listener });
      this.socket.ref();
      this.send(`{"type":"${type}","id":${id},${members}}`);
    });
  }
}

// Describes a value for the host: JSON where it is JSON, else what inspect says; cut at limit characters.
function shown(value, limit) {
  if (value === undefined || value === null) return undefined;
  let kind = "json";
  let text;
  try {
    text = JSON.stringify(value, exact);
  } catch {} // circular, a bigint, or not exact
  if (text === undefined) {
    kind = "text";
    text = inspect(value, { depth: 4, maxArrayLength: 200, maxStringLength: limit }).replace(STACK, "");
  }
  const size = Buffer.byteLength(text);
  if (text.length <= limit) return { kind, text, size };
  return { kind: "text", text: (typeof value === "string" ? value : text).slice(0, limit), size };
}

// A replacer that stops where JSON would not show all of it: a Map, an error or a function would come out as {} or nothing.
function exact(key, value) {
  const original = this[key];
  const kind = typeof original;
  if (kind === "function" || kind === "symbol" || (kind === "number" && !Number.isFinite(original))) throw INEXACT;
  if (kind !== "object" || original === null || Array.isArray(original)) return value;
  if (original instanceof Blob || OPAQUE.test(original.constructor?.name ?? "")) throw INEXACT;
  return value;
}

const STACK = /\n\s+at .*?(?=(,| \{)?(\n|$))/g; // of an error in a value: it names our own files, and costs tokens
const INEXACT = new Error("not exact");
const OPAQUE = /^(Map|Set|WeakMap|WeakSet|WeakRef|Promise|RegExp|ArrayBuffer|DataView|Buffer|.*Array|.*Error)$/;

const done = { type: "done" };
const files = new Copy();
let job;
let given = false; // what was changed has been sent
let reported = false;
let settled = false;

// Nothing is left to do, timers and calls included.
function idle() {
  if (settled) return report();
  fail(new Error("the program waits for a promise that nothing will settle"));
}

// Sends what the program changed in /workspace, as well as it can.
function handOver() {
  if (!job?.workspace || given || bridge.lost) return;
  given = true;
  const clock = files.clock;
  if (files.give(job.workspace, (text) => bridge.writeNow(0x81, Buffer.from(text)), (data) => bridge.writeNow(0x82, data)) && clock !== files.clock) {
    bridge.writeNow(0x81, Buffer.from(copied()));
  }
}

const copied = () => JSON.stringify({ type: "copied", clock: String(files.clock) });

function report() {
  if (reported) return;
  reported = true;
  if (bridge.socket.writableLength) bridge.socket.write("", conclude);
  else conclude();
}

function conclude() {
  handOver();
  if (promised || (encoded && !done.fault) || PROMISED.test(done.value?.kind === "text" ? done.value.text : "")) console.error("note: a promise was shown in place of its value: write await before the call");
  bridge.send(JSON.stringify(done));
  bridge.socket.end();
}

function fail(error) {
  if (reported) return;
  done.fault = describe(error, [...unanswered].map((call) => call.tool));
  delete done.value;
  report();
  bridge.socket.once("close", () => process.exit(0));
}

async function run() {
  mkdirSync(dirname(MODULE), { recursive: true });
  writeFileSync(MODULE, job.code);
  const module = await import("file://" + MODULE);
  let value = module.default;
  if (typeof value === "function" && !/^class\b/.test(Function.prototype.toString.call(value))) value = value();
  done.value = shown(await value, job.value_limit);
  settled = true;
}

const PROMISED = /Promise \{ <pending> \}|\[object Promise\]/;
let promised = false; // one was printed
let encoded = false; // one was made JSON

// JSON has nothing of a promise: that it was made of one is told as if it were printed, if nothing else is wrong.
Object.defineProperty(Promise.prototype, "toJSON", {
  configurable: true, writable: true,
  value() {
    encoded = true;
    return {};
  },
}); // prettier-ignore

// node writes to pipes in the background: a program could fill the memory with
// what it prints, and lose the end of it. Writing at once costs nothing here.
function printAtOnce(name, fd) {
  const write = (chunk, encoding, done) => {
    promised ||= typeof chunk === "string" && PROMISED.test(chunk);
    for (let rest = typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk; rest.length; ) rest = rest.subarray(writeSync(fd, rest));
    done();
  };
  const stream = Object.assign(new Writable({ decodeStrings: false, write }), { fd });
  Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => stream });
}

printAtOnce("stdout", 1);
printAtOnce("stderr", 2);
globalThis.require = createRequire("/workspace/");
const bridge = new Bridge(BRIDGE);
use(bridge);
globalThis[Symbol.for("sallyport")] = Object.freeze({ ...api });
bridge.onContent = (data) => files.content(data);
bridge.onMessage = (message) => {
  if (message.type === "files") return files.take(message);
  if (files.clock) bridge.send(copied());
  job = message;
  process.once("exit", () => bridge.socket.writableLength || handOver());
  bridge.onMessage = () => {};
  bridge.socket.unref();
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
  process.on("beforeExit", idle);
  delete process.env.MALLOC_ARENA_MAX; // meant for this process alone, and read by now
  process.argv = [process.argv[0], "program.ts"];
  run().catch(fail);
};
