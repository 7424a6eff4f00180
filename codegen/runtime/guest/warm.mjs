// Gets a node ready that is frozen, copied and woken later: what programs need is loaded, what must differ is made anew.

import { existsSync, rmSync } from "node:fs";
import { describe } from "./fault.mjs";
import { refresh } from "./random.mjs";
import { shown } from "./shown.mjs";

export { refresh };

const USUAL = ["assert", "buffer", "child_process", "crypto", "events", "fs", "fs/promises", "os", "path", "perf_hooks", "querystring", "readline", "stream", "stream/promises", "string_decoder", "timers/promises", "url", "util", "vm", "zlib"];
const OURS = ["./check.mjs", "./pages.mjs", "./media.cjs", "./saved.cjs", "./shapes.cjs", "./hints.cjs"];
const MAP = Buffer.from(JSON.stringify({ version: 3, sources: ["first.ts"], names: [], mappings: "AAAA" })).toString("base64");
// A program that uses what most do, and fails: what compiles, prints and explains has run once then.
const FIRST = `const rows = [{ a: 1, b: "x" }]; console.log(rows, new Map(), "%s"); console.error("x");
await Promise.all(rows.map(async (row) => ({ ...row })));
export default () => { throw new TypeError("x"); };
//# sourceMappingURL=data:application/json;base64,${MAP}`;

// Loads what programs usually need, and runs one by load.
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

// Returns when a file is there. Nothing else goes on meanwhile, and it costs next to nothing.
export function wait(path) {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(path)) Atomics.wait(cell, 0, 0, 3);
}
