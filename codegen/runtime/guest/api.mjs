// What programs import as "sallyport", apart from how calls travel: over the bridge of a
// sandbox (guest.mjs), or over HTTP in a program of a person's own (client.mjs).

import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { inspect } from "node:util";

export class ToolError extends Error {
  constructor(message, kind = "internal", tool = "", hint = "") {
    super(message);
    this.name = "ToolError";
    Object.assign(this, { kind, tool, hint });
  }
}

export class Blob {
  constructor(data, mime = "", uri = "", name = "") {
    Object.assign(this, { data, mime, uri, name });
  }
  get length() {
    return this.data.length;
  }
  toJSON() {
    return Buffer.from(this.data).toString("base64");
  }
  [inspect.custom]() {
    return `<Blob ${this.mime || "application/octet-stream"}, ${this.data.length} bytes>`;
  }
}

let link;

// Says by what calls go out: link.call(tool, args as JSON, listener of progress or undefined)
// resolves to a frame of docs/bridge.md, a result or an error.
export function use(transport) {
  link = transport;
}

function native(value) {
  if (value.parts) return value.parts.map(native);
  if (!value.blob) return value.json;
  const { data, mime, uri, name } = value.blob;
  return new Blob(new Uint8Array(Buffer.from(data ?? "", "base64")), mime, uri, name);
}

// Bigints leave JSON.stringify as marked strings and lose the mark afterwards: node 20 has no other way.
const BIGINT = `bigint-${randomUUID()}:`;
const UNSENDABLE = /^(Promise|RegExp|WeakMap|WeakSet|WeakRef|.*Error)$/;

// What programs pass where JSON is wanted: bytes become base64, sets arrays, maps objects. What JSON would lose is refused.
function plain(key, value) {
  const original = this[key];
  if (original instanceof Uint8Array || original instanceof ArrayBuffer) return Buffer.from(original).toString("base64");
  if (original instanceof Set) return [...original];
  if (original instanceof Map) return Object.fromEntries(original);
  if (typeof value === "bigint") return BIGINT + value;
  const kind = typeof value === "object" ? (value?.constructor?.name ?? "") : typeof value;
  if (kind === "number" && !Number.isFinite(value)) throw new TypeError(`argument ${key || "list"}: NaN and Infinity cannot be sent`);
  if (kind === "Promise") throw new TypeError(`argument ${key}: a promise cannot be sent; await it first`);
  if (kind === "function" || kind === "symbol" || UNSENDABLE.test(kind)) throw new TypeError(`argument ${key}: a ${kind} cannot be sent`);
  return value;
}

function encoded(args) {
  const text = JSON.stringify(args, plain);
  return text.includes(BIGINT) ? text.replaceAll(new RegExp(`"${BIGINT}(-?\\d+)"`, "g"), "$1") : text;
}

let asking; // who wants to know what a wrapper would call

// Returns { tool, args, spec } of the call that a wrapper would make. The call is not made.
function asked(wrapper, args) {
  let seen;
  asking = (found) => (seen ??= found);
  try {
    Promise.resolve(wrapper(args)).catch(() => {});
  } finally {
    asking = undefined;
  }
  if (!seen) throw new TypeError("iterate takes a wrapper and its arguments: iterate(list_issues, { owner: ... })");
  return seen;
}

export function iterate(wrapper, args = {}, options = {}) {
  if (typeof wrapper !== "function") throw new TypeError(`iterate takes a wrapper and its arguments: iterate(list_issues, { owner: ... }), not a ${typeof wrapper}`);
  const first = asked(wrapper, args);
  return {
    async *[Symbol.asyncIterator]() {
      const { pages } = await import("./pages.mjs"); // few programs need it
      yield* pages(first, options.max_items, { call, ToolError });
    },
  };
}

export async function call(tool, args = {}, spec = undefined) {
  if (asking) return asking({ tool, args, spec });
  const at = new Error();
  if (args === null || typeof args !== "object" || Array.isArray(args)) {
    const hint = spec ? (await checker()).rewrite(tool, args, spec) : `write: await ${tool.split(".")[1]}({ name: value })`;
    throw thrown(at, new ToolError(`${tool} takes one object of named arguments`, "invalid", tool, hint));
  }
  const text = encoded(args);
  const answer = await link.call(tool, spec ? await checked(tool, args, text, spec, at) : text, listeners?.getStore());
  if (!answer.error) return native(answer.value);
  const { message, kind, hint } = answer.error;
  throw thrown(at, new ToolError(message, kind, tool, hint));
}

// Says that an error was thrown where at was made.
function thrown(at, error) {
  error.stack = `ToolError: ${error.message}\n${at.stack.split("\n").slice(1).join("\n")}`;
  return error;
}

let check; // loaded by the first call that needs it

async function checker() {
  return (check ??= await import("./check.mjs"));
}

// Arguments of more characters are checked by the gateway alone.
const CHECKED = 8 << 20;

// Returns the arguments, encoded as text, as they are sent; throws if the tool cannot take them.
async function checked(tool, args, text, spec, at) {
  if (text.length > CHECKED) return text;
  const { wrong, hint, drop } = (check ?? (await checker())).refuse(JSON.parse(text), spec);
  if (wrong) throw thrown(at, new ToolError(wrong, "invalid", tool, hint));
  if (drop.length === 0) return text;
  const members = Object.entries(args instanceof Map ? Object.fromEntries(args) : args);
  return encoded(Object.fromEntries(members.filter(([name]) => !drop.includes(name))));
}

let listeners; // made when first needed: it costs every promise something

// Hears how far the calls are that body makes.
export function progress(listener, body) {
  if (typeof listener !== "function" || typeof body !== "function") throw new TypeError("progress takes two functions: await progress((p) => console.log(p), () => f({ ... }))");
  listeners ??= new AsyncLocalStorage();
  return listeners.run(listener, body);
}

// Hands progress to the program. Its mistakes do not hurt the call.
export async function tell(waiting, { progress, total, message = "" }) {
  try {
    await waiting.listener?.({ progress, total, message, tool: waiting.tool });
  } catch (error) {
    waiting.listener = undefined;
    console.error(`progress of ${waiting.tool}: ${error}`);
  }
}

export async function parallel(...thunks) {
  const list = thunks.length === 1 && Array.isArray(thunks[0]) ? thunks[0] : thunks;
  return Promise.all(list.map((thunk) => (typeof thunk === "function" ? thunk() : thunk)));
}
