// What programs import as "sallyport", apart from how calls travel: over the bridge of a
// sandbox (guest.mjs), or over HTTP in a program of a person's own (client.mjs).

import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { inspect } from "node:util";

// A call that failed: code says how, tool and upstream which, hint what would be right.
export class ToolError extends Error {
  constructor(message, code = "internal", tool = "", hint = "", retryable = false) {
    super(message);
    Object.assign(this, { code, upstream: tool.split(".")[0], tool, hint, retryable });
  }
  get kind() {
    return this.code; // its older name
  }
  toJSON() {
    const { name, message, code, tool, hint, retryable } = this;
    return { name, message, code, tool, hint, retryable };
  }
  [inspect.custom](depth, options) {
    const told = Object.entries(this).filter(([name, value]) => value && name !== "upstream");
    return `${this.name}: ${this.message} ${inspect(Object.fromEntries(told), { ...options, depth: 1, breakLength: Infinity })}`;
  }
}
ToolError.prototype.name = "ToolError";

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

// What few programs need is read when one does; in a bundle, which reads no files, it is provided.
const parts = {};
const lazy = (name) => parts[name] ?? createRequire(import.meta.url)(name);

export function provide(more) {
  Object.assign(parts, more);
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
let mark; // made when first needed: what is random and was made before a copy would be the same in all
const UNSENDABLE = /^(Promise|RegExp|WeakMap|WeakSet|WeakRef|.*Error)$/;

// What programs pass where JSON is wanted: bytes become base64, sets arrays, maps objects. What JSON would lose is refused.
function plain(key, value) {
  const original = this[key];
  if (original instanceof Uint8Array || original instanceof ArrayBuffer) return Buffer.from(original).toString("base64");
  if (original instanceof Set) return [...original];
  if (original instanceof Map) return Object.fromEntries(original);
  if (typeof value === "bigint") return (mark ??= `bigint-${randomUUID()}:`) + value;
  const kind = typeof value === "object" ? (value?.constructor?.name ?? "") : typeof value;
  if (kind === "number" && !Number.isFinite(value)) throw new TypeError(`argument ${key || "list"}: NaN and Infinity cannot be sent`);
  if (original instanceof Promise) throw new TypeError(`argument ${key}: a promise cannot be sent; await it first`);
  if (kind === "function" || kind === "symbol" || UNSENDABLE.test(kind)) throw new TypeError(`argument ${key}: a ${kind} cannot be sent`);
  return value;
}

function encoded(args) {
  const text = JSON.stringify(args, plain);
  return mark && text.includes(mark) ? text.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1") : text;
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
    [Symbol.iterator]() {
      throw new TypeError("iterate is asynchronous: for await (const item of iterate(...))");
    },
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
  const mine = { tool };
  unanswered.add(mine);
  try {
    const answer = await link.call(tool, spec ? await checked(tool, args, text, spec, at) : text, listeners?.getStore());
    if (!answer.error) return native(answer.value);
    throw thrown(at, failure(answer.error, tool));
  } finally {
    unanswered.delete(mine);
  }
}

// The calls under way, as { tool }: who did not wait for one is told so.
export const unanswered = new Set();

function failure({ message, kind, hint, retryable }, tool) {
  return new ToolError(message, kind, tool, hint, retryable);
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

// Returns the options of a function, of which it has no others.
function chosen(name, options, known) {
  const wrong = options === null || typeof options !== "object" ? "" : Object.keys(options).find((key) => !known.includes(key));
  if (wrong !== undefined) throw new TypeError(`${name} has no option ${JSON.stringify(wrong || options)}; options are an object of: ${known.join(", ")}`);
  return options;
}

export async function search_tools(query, options = {}) {
  const asked = typeof query === "object" && query !== null ? query : { query, ...chosen("search_tools", options, ["detail", "upstream", "limit"]) };
  const told = Object.entries(asked).filter(([, value]) => value !== undefined && value !== null);
  return call("sallyport.search_tools", { ...Object.fromEntries(told), language: "typescript" });
}

// A wrapper says itself which tool it calls, and what is of this module what it is called here.
const CALLS = /\breturn \(?(?:0, )?[\w$.]*call\w*\)?\(\s*"([^"]+)"/;

function idOf(source) {
  const own = /\breturn runtime\d*\.(\w+)\(/.exec(source)?.[1];
  return CALLS.exec(source)?.[1] ?? (own && "sallyport." + own);
}

export async function describe(tool) {
  const id = typeof tool === "function" ? idOf(Function.prototype.toString.call(tool)) : tool;
  if (typeof id !== "string") throw new TypeError(`describe takes a wrapper or "upstream.name", not a ${typeof tool}`);
  return call("sallyport.describe", { tool: id, language: "typescript" });
}

export async function save_skill(name, options = {}) {
  const asked = chosen("save_skill", options, ["code", "description", "language", "params", "from_execution", "tests", "scope"]);
  const told = Object.entries({ language: asked.code && "typescript", ...asked }).filter(([, value]) => value !== undefined && value !== null);
  return call("sallyport.save_skill", { name, ...Object.fromEntries(told) });
}

export async function load_skill(name, version = undefined) {
  return call("sallyport.load_skill", version === undefined ? { name } : { name, version });
}

export async function list_skills(query = undefined) {
  return call("sallyport.list_skills", query === undefined ? {} : { query });
}

const isPromise = (value) => typeof value?.then === "function";
const PARALLEL = "parallel(() => f(1), () => f(2)) or parallel(xs.map((x) => () => f(x)))";

function isOptions(value) {
  const keys = typeof value === "object" && value !== null && !Array.isArray(value) ? Object.keys(value) : [];
  return keys.length > 0 && keys.every((key) => key === "limit" || key === "errors");
}

function unfit(value, at) {
  const kind = value === null ? "null" : Array.isArray(value) ? "an array" : `of type ${typeof value}`;
  return new TypeError(`parallel takes functions, not results, and number ${at + 1} is ${kind}: ${PARALLEL}, and then { limit, errors }`);
}

// Runs functions, at most limit at once. Promises are taken too, but they run already.
export async function parallel(...given) {
  const { limit = 16, errors = false } = isOptions(given.at(-1)) ? given.pop() : {};
  const one = given.length === 1 && typeof given[0] === "object" && typeof given[0]?.[Symbol.iterator] === "function";
  const list = one ? [...given[0]] : given;
  const wrong = list.findIndex((value) => typeof value !== "function" && !isPromise(value));
  const running = list.filter(isPromise);
  for (const promise of running) Promise.resolve(promise).catch(() => {}); // it is told of in its turn
  if (wrong >= 0) throw unfit(list[wrong], wrong);
  if (!Number.isInteger(limit) || limit < 1) throw new TypeError(`limit says how many run at once: a whole number from 1 on, not ${inspect(limit)}`);
  const results = new Array(list.length);
  const failed = new Map();
  let next = 0;
  const work = async () => {
    while (next < list.length && (errors || failed.size === 0)) {
      const at = next++;
      try {
        results[at] = await (typeof list[at] === "function" ? list[at]() : list[at]);
      } catch (error) {
        results[at] = error;
        failed.set(at, error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, list.length) }, work));
  if (errors || failed.size === 0) return results;
  await Promise.allSettled(running);
  throw first(failed, list.length, next);
}

// The error that stands first, with a word about the others.
function first(failed, all, started) {
  const error = failed.get(Math.min(...failed.keys()));
  if (error instanceof Error && (failed.size > 1 || started < all)) {
    const note = `parallel: ${failed.size} of ${all} functions failed, ${all - started} were not started`;
    Object.defineProperty(error, "notes", { value: [...(error.notes ?? []), note], configurable: true });
  }
  return error;
}

export function shape_of(value) {
  return lazy("./shapes.cjs").shape_of(value, Blob);
}

const kit = { Blob, ToolError, encoded };

export async function emit(thing, options = {}) {
  const at = new Error();
  const { name, mime } = chosen("emit", options, ["name", "mime"]);
  thing = await (isPromise(thing) ? thing : undefined) ?? thing;
  if (Array.isArray(thing) && thing.some((item) => item instanceof Blob)) {
    for (const item of thing) await emit(item, item instanceof Blob ? options : {}); // what a tool answers with: texts and pictures
    return;
  }
  if (thing instanceof globalThis.Blob) thing = new Blob(new Uint8Array(await thing.arrayBuffer()), thing.type, "", thing.name);
  const block = lazy("./media.cjs").content(thing, name, mime, kit);
  if (!link?.ask) throw new ToolError("emit works inside of execute_code only: here is no client to send to", "invalid", "sallyport.emit");
  const answer = await link.ask("emit", `"content":${JSON.stringify(block)}`, "sallyport.emit");
  if (answer.error) throw thrown(at, failure(answer.error, "sallyport.emit"));
}

export function save(name, value) {
  lazy("./saved.cjs").save(name, value, kit);
}

export function load(name) {
  return lazy("./saved.cjs").load(name, kit);
}
