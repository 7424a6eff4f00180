// Describes an exception of the program for a model: type, message, its own lines, a hint.

import { createRequire } from "node:module";
import { inspect } from "node:util";

// open lists the tools whose calls are in flight; folder is the folder of the program.
export function describe(error, open = [], folder = "", name = "program.ts") {
  const known = error !== null && typeof error === "object" && "message" in error;
  const fault = { type: "Error", message: "", lines: [], hint: "" };
  try {
    fault.type = known ? String(error.name || error.constructor?.name || "Error") : "Thrown value";
    const message = (known ? String(error.message) : show(error)).slice(0, 4000);
    fault.message = message;
    if (error instanceof AggregateError) fault.message += ": " + error.errors.slice(0, 3).map((one) => show(one?.message ?? one).slice(0, 300)).join("; ");
    if (error?.cause) fault.message += ` (caused by ${String(error.cause?.message ?? error.cause).slice(0, 300)})`;
    fault.lines = known ? lines(String(error.stack ?? ""), folder, name) : [];
    for (const note of error?.notes?.slice?.(0, 3) ?? []) fault.message += ` (${String(note).slice(0, 300)})`;
    fault.hint = createRequire(import.meta.url)("./hints.cjs").hint(error, message, open).slice(0, 500);
  } catch {}
  return fault;
}

function show(value) {
  try {
    return typeof value === "string" ? value : JSON.stringify(value) ?? String(value);
  } catch {
    return inspect(value, { depth: 2 });
  }
}

// Returns the frames in the program and in workspace files, outermost first; of more than ten the first and last five.
function lines(stack, folder, name) {
  const frames = [];
  for (const row of stack.split("\n")) {
    const found = /^\s+at (?:(?:async |new )*(.*?) \()?(?:file:\/\/)?(\S.*?):(\d+):\d+\)?$/.exec(row);
    if (!found) continue;
    const other = /(?:^|\/)(workspace|skills):(.+)$/.exec(found[2]);
    if (!other && !found[2].endsWith(folder + name)) continue;
    const unnamed = /^(async )?(Object\.|Module\.)?<?(anonymous|eval)>?/.test(found[1] ?? "");
    const file = other?.[1] === "skills" ? `skills/${other[2]}` : other?.[2];
    frames.unshift({ file, line: Number(found[3]), function: unnamed ? "" : (found[1] ?? ""), source: "" });
  }
  return frames.length <= 10 ? frames : [...frames.slice(0, 5), ...frames.slice(-5)];
}
