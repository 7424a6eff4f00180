// Prepares a node process for a snapshot that is copied and resumed: loads common modules, and resets state that must differ.

import { once } from "node:events";
import { existsSync, rmSync, stat } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { createServer } from "node:net";
import threads from "node:worker_threads";
import { describe } from "./fault.mjs";
import { refresh } from "./random.mjs";
import { shown } from "./shown.mjs";

export { refresh };

const USUAL = ["assert", "buffer", "child_process", "crypto", "events", "fs", "fs/promises", "os", "path", "perf_hooks", "querystring", "readline", "stream", "stream/promises", "string_decoder", "timers/promises", "url", "util", "vm", "zlib"];
const OURS = ["./check.mjs", "./pages.mjs", "./media.cjs", "./saved.cjs", "./shapes.cjs", "./hints.cjs"];
const MAP = Buffer.from(JSON.stringify({ version: 3, sources: ["first.ts"], names: [], mappings: "AAAA" })).toString("base64");
// A program that exercises compiling, printing and error reporting once.
const FIRST = `const rows = [{ a: 1, b: "x" }]; console.log(rows, new Map(), "%s"); console.error("x");
await Promise.all(rows.map(async (row) => ({ ...row })));
export default () => { throw new TypeError("x"); };
//# sourceMappingURL=data:application/json;base64,${MAP}`;

// Loads common modules, and runs a program with load.
export async function up(load, folder) {
  await Promise.all(USUAL.map((name) => import("node:" + name)));
  await Promise.all(OURS.map((name) => import(name)));
  const module = await load(folder + "first.mjs", FIRST);
  try {
    module.default();
  } catch (error) {
    describe(error);
  }
  shown({ a: [1, "x"] }, 100);
  shown(new Map([[1, 2]]), 100);
  rmSync(folder, { recursive: true });
}

// Runs a program over a bridge to this process, so that all code that a program needs is compiled before the first fork.
export async function rehearse(begin, folder) {
  const path = "/tmp/.rehearsal";
  const server = createServer().listen(path);
  await once(server, "listening");
  const end = begin(path);
  const [socket] = await once(server, "connection");
  await once(socket, "data");
  socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n");
  const run = JSON.stringify({ type: "run", code: "export default { a: [1] };", value_limit: 100 });
  socket.write(Buffer.concat([Buffer.from([0x81, run.length]), Buffer.from(run)]));
  server.unref();
  socket.unref();
  await once(socket, "data");
  end();
  socket.destroy();
  server.close();
  await new Promise((resolve) => setTimeout(resolve, 5));
  rmSync(folder, { recursive: true, force: true });
}

// Returns a function that runs the zygote and returns in each forked process, with the descriptor of its bridge.
export function zygote(settings) {
  const library = { exports: {} };
  const machine = process.arch === "x64" ? "x86_64" : "aarch64";
  process.dlopen(library, `/opt/sallyport/zygote-${machine}.so`);
  const { serve, leave, onIdle } = library.exports;
  denyWorkers();
  return () => {
    const bridge = serve(settings);
    process.reallyExit = (status) => leave(Number(status) & 0xff);
    if (!onIdle(idle)) leave(1);
    startThreads();
    return bridge;
  };
}

// Starts the pool of threads that reads modules: each fork needs its own, and two cost half as much as the usual four.
function startThreads() {
  process.env.UV_THREADPOOL_SIZE = "2";
  stat("/", () => {});
  delete process.env.UV_THREADPOOL_SIZE; // the pool has read it
}

// A worker needs threads of node that a forked process does not have: it would wait forever.
function denyWorkers() {
  threads.Worker = class Worker {
    constructor() {
      throw new Error("a worker thread needs a sandbox of its own: run the program with isolation: \"program\"");
    }
  };
  syncBuiltinESMExports();
}

// Does what node does at the end of its event loop.
function idle(again) {
  if (again) process.exit();
  process.emit("beforeExit", process.exitCode ?? 0);
}

// Blocks until a file exists.
export function wait(path) {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(path)) Atomics.wait(cell, 0, 0, 3);
}
