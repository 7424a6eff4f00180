// Describes a program's value for the host.

import { inspect } from "node:util";
import { Blob } from "./api.mjs";

// Describes a value: as JSON if possible, else by inspect; truncated to limit characters.
export function shown(value, limit) {
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

// A JSON replacer that throws for values that JSON would lose, such as a Map, an error or a function.
function exact(key, value) {
  const original = this[key];
  const kind = typeof original;
  if (kind === "function" || kind === "symbol" || (kind === "number" && !Number.isFinite(original))) throw INEXACT;
  if (kind !== "object" || original === null || Array.isArray(original)) return value;
  if (original instanceof Blob || OPAQUE.test(original.constructor?.name ?? "")) throw INEXACT;
  return value;
}

const STACK = /\n\s+at .*?(?=(,| \{)?(\n|$))/g; // stack of an error in a value: it names internal files and costs tokens
const INEXACT = new Error("not exact");
const OPAQUE = /^(Map|Set|WeakMap|WeakSet|WeakRef|Promise|RegExp|ArrayBuffer|DataView|Buffer|.*Array|.*Error)$/;
