// Turns what the program threw into what a model can repair: type, message, its own lines, a hint.

import { readdirSync } from "node:fs";
import { inspect } from "node:util";

const NAME = "program.ts";

export function describe(error) {
  const known = error !== null && typeof error === "object" && "message" in error;
  const fault = { type: "Error", message: "", lines: [], hint: "" };
  try {
    fault.type = known ? String(error.name || error.constructor?.name || "Error") : "Thrown value";
    fault.message = (known ? String(error.message) : show(error)).slice(0, 4000);
    if (error instanceof AggregateError) fault.message += ": " + error.errors.slice(0, 3).map((one) => show(one?.message ?? one).slice(0, 300)).join("; ");
    if (error?.cause) fault.message += ` (caused by ${String(error.cause?.message ?? error.cause).slice(0, 300)})`;
    fault.lines = known ? lines(String(error.stack ?? "")) : [];
    fault.hint = String(error?.hint || hint(fault.message)).slice(0, 500);
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

// The frames in the program itself, outermost first; of many only the first and the last five.
function lines(stack) {
  const frames = [];
  for (const row of stack.split("\n")) {
    const found = /^\s+at (?:(?:async |new )*(.*?) \()?\S*?program\.ts:(\d+):\d+\)?$/.exec(row);
    if (found) frames.unshift({ line: Number(found[2]), function: /^(async )?(Object\.|Module\.)?<?(anonymous|eval)>?/.test(found[1] ?? "") ? "" : (found[1] ?? ""), source: "" });
  }
  return frames.length <= 10 ? frames : [...frames.slice(0, 5), ...frames.slice(-5)];
}

function hint(message) {
  const missing = /^(\w+) is not defined$/.exec(message)?.[1];
  if (missing) return homes(missing);
  if (/Cannot find (package|module)/.test(message)) return "only node's own modules, servers and sallyport can be imported";
  if (/heap out of memory|Array buffer allocation failed|Invalid (string|array) length/.test(message)) return "the sandbox's memory limit is reached: work on smaller pieces";
  return "";
}

function homes(name) {
  for (const upstream of readdirSync("/servers", { withFileTypes: true })) {
    if (!upstream.isDirectory()) continue;
    if (upstream.name === name) return `write: import { ${name} } from "servers"`;
    if (readdirSync("/servers/" + upstream.name).includes(name + ".ts")) return `write: import { ${name} } from "servers/${upstream.name}"`;
  }
  return "";
}
