// Boots a TypeScript execution: connects the bridge, waits for programs (one
// JavaScript module each, compiled on the host), runs them, reports. The host does not
// trust this code: a program can change it, with effect only on itself.

import { existsSync, mkdirSync, writeFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { Writable } from "node:stream";
import * as api from "./api.mjs";
import { Bridge } from "./bridge.mjs";
import { describe } from "./fault.mjs";
import { Copy } from "./files.mjs";
import { shown } from "./shown.mjs";

const BRIDGE = "/run/sallyport/bridge.sock";
const FOLDER = "/tmp/.program/";
const files = new Copy();
let bridge;
let count = 0; // of programs
let current; // the running program

class Program {
  constructor(job) {
    this.job = job;
    this.done = { type: "done" };
    this.given = false; // the changed files were sent
    this.reported = false;
    this.settled = false;
    this.promised = false; // a promise was printed
    this.encoded = false; // a promise was encoded as JSON
    this.late = []; // the tools whose calls still ran when the program's last line had run
    this.folder = ++count === 1 ? FOLDER : `${FOLDER}${count}/`; // separates its lines from those of other programs
  }

  async run() {
    Object.assign(globalThis, this.job.variables);
    let value = (await load(this.folder + "program.mjs", this.job.code)).default;
    if (typeof value === "function" && !/^class\b/.test(Function.prototype.toString.call(value))) value = value();
    this.done.value = shown(await value, this.job.value_limit);
    this.settled = true;
    this.late = RACES.test(this.job.code) ? [] : [...api.unanswered].map((call) => call.tool.split(".")[1]);
    this.printed = printed;
  }

  // Called when no timers or calls are pending.
  idle() {
    if (this.settled && this.last()) return this.report();
    if (this.settled) return;
    this.fail(new Error("the program waits for a promise that nothing will settle"));
  }

  // Reports whether there are no other beforeExit listeners. It removes others (node:test prints its summary in one), and schedules another beforeExit.
  last() {
    const others = process.rawListeners("beforeExit").filter((one) => one !== ended);
    for (const one of others) process.removeListener("beforeExit", one);
    if (others.length) setImmediate(() => {});
    return others.length === 0;
  }

  // Sends the program's changes in /workspace, on a best-effort basis.
  handOver() {
    if (!this.job.workspace || this.given || bridge.lost) return;
    this.given = true;
    const clock = files.clock;
    if (files.give(this.job.workspace, (text) => bridge.writeNow(0x81, Buffer.from(text)), (data) => bridge.writeNow(0x82, data)) && clock !== files.clock) {
      bridge.writeNow(0x81, Buffer.from(copied()));
    }
  }

  // Reports the end by process.exit, and the changed files.
  leave(code) {
    this.handOver();
    if (this.reported || bridge.lost || code === 13) return; // 13: it waits for what nothing will settle
    this.reported = true;
    bridge.writeNow(0x81, Buffer.from(JSON.stringify({ type: "done", exit: Number(code) & 0xff, leaving: true })));
  }

  report() {
    if (this.reported) return;
    this.reported = true;
    if (bridge.lost) return void setTimeout(() => process.exit(1), 2000); // the sandbox is being stopped: /workspace stays readable while this process runs
    bridge.over = true;
    bridge.flush();
    if (bridge.socket.writableLength) bridge.socket.write("", () => this.conclude());
    else this.conclude();
  }

  conclude() {
    this.handOver();
    const { done } = this;
    if (api.refused.length) done.refused = { count: api.refused.length, ...api.refused[0] };
    if (process.exitCode && !done.fault) done.exit = Number(process.exitCode) & 0xff;
    process.exitCode = undefined;
    if (this.promised || (this.encoded && !done.fault) || PROMISED.test(done.value?.kind === "text" ? done.value.text : "")) console.error("note: a promise was shown in place of its value: write await before the call");
    else if (!done.fault) this.noteMistakes();
    bridge.send(JSON.stringify(done));
    if (this.job.keep) return bridge.rest();
    bridge.socket.end();
    if (done.fault) bridge.socket.once("close", () => process.exit(0));
  }

  // Prints what a program that succeeded may have got wrong without an error.
  noteMistakes() {
    const shown = printed;
    const names = [...new Set([...api.unawaited].map((call) => call.name))].filter(isRead);
    if (names.length) console.error(`note: not awaited, so the result was not used: ${listed(names)}`);
    const late = [...new Set(this.late)].filter((name) => isRead(name) && !names.includes(name));
    const loop = /\bforEach\(\s*async\b/.test(this.job.code) ? "; forEach does not wait: for (const x of xs) await" : "";
    if (late.length && shown === this.printed) console.error(`note: still ran at the last line, so what they gave came too late: ${listed(late)}; await them, or return their promises${loop}`);
    const lazy = [...this.job.code.matchAll(/function\s*\*\s*(\w+)/g)].map((found) => found[1]).filter((name) => new RegExp(`^\\s*${name}\\(.*\\);?$`, "m").test(this.job.code));
    if (lazy.length) console.error(`note: generators that nothing went through, so they did not run: ${listed(lazy)}`);
    const method = ASYNC_CALLBACK.exec(this.job.code)?.[1];
    if (method) console.error(`note: ${method} does not wait for an async function, whose promise counts as true: await Promise.all(xs.map(...)) first`);
  }

  fail(error) {
    if (this.reported) return;
    this.done.fault = describe(error, [...api.unanswered].map((call) => call.tool), this.folder, this.job.file);
    delete this.done.value;
    this.report();
  }
}

async function load(path, code) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, code);
  return import("file://" + path);
}

const ended = () => current?.idle();
const copied = () => JSON.stringify({ type: "copied", clock: String(files.clock) });

const listed = (names) => names.slice(0, 5).join(", ") + (names.length > 5 ? ", ..." : "");
// Reports whether a function is called for its result, as far as its name tells; the result of others may not be needed.
const isRead = (name) => !/^(add|append|archive|assign|cancel|close|comment|create|delete|disable|edit|enable|insert|log|mark|merge|move|notify|post|publish|push|put|remove|rename|reply|save|send|set|store|submit|update|upload|write)(?![a-z])/.test(name);
const RACES = /\bPromise\.(race|any)\b/; // calls that lose it still run
let printed = 0; // pieces of output

// Methods that take the promise of an async callback for its value.
const ASYNC_CALLBACK = /\.(filter|some|every|find|findIndex|findLast|findLastIndex|sort|toSorted)\(\s*async\b/;

const PROMISED = /Promise \{ <pending>|\[object Promise\]/;

// JSON cannot encode a promise: the program gets a note about it, as for a printed promise, unless it fails.
Object.defineProperty(Promise.prototype, "toJSON", {
  configurable: true, writable: true,
  value() {
    if (current) current.encoded = true;
    return {};
  },
}); // prettier-ignore

// node writes to pipes asynchronously: a program could exhaust memory with its output, or
// lose the end of it. Synchronous writes are cheap here.
function printAtOnce(name, fd) {
  const write = (chunk, encoding, done) => {
    printed++;
    if (current && typeof chunk === "string" && PROMISED.test(chunk)) current.promised = true;
    for (let rest = typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk; current && rest.length; ) rest = rest.subarray(writeSync(fd, rest));
    done();
  };
  const stream = Object.assign(new Writable({ decodeStrings: false, write }), { fd });
  Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => stream });
}

function message(frame) {
  if (frame.type === "files") return files.take(frame);
  if (frame.type !== "run") return;
  if (files.clock) bridge.send(copied());
  if (!count) process.chdir("/workspace"); // may be mounted since the start
  current = new Program(frame);
  api.unawaited.clear();
  api.refused.length = 0;
  process.argv[1] = frame.file ? "/workspace/" + frame.file : "program.ts";
  bridge.go(frame.frame);
  current.run().catch((error) => current.fail(error));
}

// Sets the usual modules of node as global variables, since many programs forget their import.
function provide() {
  const require = createRequire(import.meta.url);
  for (const name of ["assert", "child_process", "fs", "os", "path", "readline", "url", "util", "zlib"]) {
    const set = (value) => Object.defineProperty(globalThis, name, { configurable: true, enumerable: true, writable: true, value });
    Object.defineProperty(globalThis, name, { configurable: true, enumerable: false, get: () => require("node:" + name), set });
  }
}

function connect(path, patient) {
  bridge = new Bridge(path, patient);
  api.use(bridge);
  bridge.onContent = (data) => files.content(data);
  bridge.onMessage = message;
}

// Runs the programs of a bridge that is no host's, and returns a function that forgets them.
function rehearsal(path) {
  count = -1;
  connect(path);
  process.on("beforeExit", ended);
  return () => {
    process.removeListener("beforeExit", ended);
    current = undefined;
    count = 0;
    bridge.socket.destroy();
  };
}

async function main() {
  printAtOnce("stdout", 1);
  printAtOnce("stderr", 2);
  globalThis.require = createRequire("/workspace/");
  provide();
  globalThis[Symbol.for("sallyport")] = Object.freeze({ ...api });
  delete process.env.MALLOC_ARENA_MAX; // only for this process, which has read it
  process.argv = [process.argv[0], "program.ts"];
  const zygote = process.env.SALLYPORT_ZYGOTE;
  delete process.env.SALLYPORT_ZYGOTE;
  const early = zygote || !existsSync(BRIDGE);
  let path = BRIDGE;
  if (early) {
    const warm = await import("./warm.mjs");
    await warm.up(load, FOLDER);
    if (zygote) await warm.rehearse(rehearsal, FOLDER);
    const serve = zygote && warm.zygote(zygote);
    writeSync(1, "ready\n");
    if (serve) path = serve();
    else warm.wait(BRIDGE);
    warm.refresh();
  }
  connect(path, early && !zygote);
  process.on("uncaughtException", (error) => current?.fail(error));
  process.on("unhandledRejection", (error) => current?.fail(error));
  process.on("beforeExit", ended);
  process.once("exit", (code) => {
    bridge.flush();
    if (!bridge.socket.writableLength) current?.leave(code);
  });
}

await main();
