// The module "sallyport" for programs, without the transport of calls: the bridge in a
// sandbox (guest.mjs), or HTTP in programs outside of a sandbox (client.mjs).

import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { inspect } from "node:util";
import { parse } from "./exact.mjs";
import { guarded } from "./pending.mjs";

// A call that failed: its code, tool and upstream, and a hint for a correct call.
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

// Rarely needed parts are loaded on first use. A bundle, which cannot read files, provides them.
const parts = {};
const lazy = (name) => parts[name] ?? createRequire(import.meta.url)(name);

export function provide(more) {
  Object.assign(parts, more);
}

let link;

// Sets the transport of calls: link.call(tool, args as JSON, progress listener or undefined)
// resolves to a frame of docs/reference/bridge.md, a result or an error.
export function use(transport) {
  link = transport;
}

function native(value) {
  if (value.parts) return value.parts.map(native);
  if (!value.blob) return value.json;
  const { data, mime, uri, name } = value.blob;
  return new Blob(new Uint8Array(Buffer.from(data ?? "", "base64")), mime, uri, name);
}

// JSON.stringify gets bigints as marked strings, and the quotes and marks are removed afterwards: node 20 has no rawJSON.
let mark; // created on first use, since random values from before a snapshot would be equal in all copies
const UNSENDABLE = /^(Promise|RegExp|WeakMap|WeakSet|WeakRef|.*Error)$/;

// Converts values to JSON: bytes to base64, sets to arrays, maps to objects. It rejects values that JSON would lose.
function plain(key, value) {
  const original = this[key];
  if (original instanceof Uint8Array || original instanceof ArrayBuffer) return Buffer.from(original).toString("base64");
  if (original instanceof Set) return [...original];
  if (original instanceof Map) return Object.fromEntries(original);
  if (typeof original === "bigint") return (mark ??= `bigint-${randomUUID()}:`) + value;
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

let asking; // set while asked() determines the call of a wrapper

// Returns { tool, args, spec } of the call that a wrapper would make, without making it.
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

export function call(tool, args = {}, spec = undefined) {
  if (asking) return asking({ tool, args, spec });
  return guarded(made(tool, args, spec, new Error()), tool.slice(tool.indexOf(".") + 1));
}

// Makes a call; at has the stack of its caller.
async function made(tool, args, spec, at) {
  if (args === null || typeof args !== "object" || Array.isArray(args)) {
    const hint = spec ? (await checker()).rewrite(tool, args, spec) : `write: await ${tool.split(".")[1]}({ name: value })`;
    throw thrown(at, refusal(`${tool} takes one object of named arguments`, tool, hint));
  }
  const text = encoded(args);
  const mine = { tool };
  unanswered.add(mine);
  try {
    let answer = await link.call(tool, spec ? await checked(tool, args, text, spec, at) : text, listeners?.getStore());
    if (spec && link.unwrap) answer = link.unwrap(answer, spec); // outside of a sandbox
    if (!answer.error) return native(answer.value);
    throw thrown(at, failure(answer.error, tool));
  } finally {
    unanswered.delete(mine);
  }
}

export { unawaited } from "./pending.mjs";

// The calls in flight, as { tool }, for a hint about a missing await.
export const unanswered = new Set();

// The calls that did not leave the sandbox, as { tool, message }.
export const refused = [];

function refusal(message, tool, hint) {
  refused.push({ tool, message });
  return new ToolError(message, "invalid", tool, hint);
}

function failure({ message, kind, hint, retryable }, tool) {
  return new ToolError(message, kind, tool, hint, retryable);
}

// Gives an error the stack of at, and returns it.
function thrown(at, error) {
  error.stack = `ToolError: ${error.message}\n${at.stack.split("\n").slice(1).join("\n")}`;
  return error;
}

let check; // loaded by the first call that needs it

async function checker() {
  return (check ??= await import("./check.mjs"));
}

// Longer arguments, in characters, are checked only by the gateway.
const CHECKED = 8 << 20;

// Returns the encoded arguments to send; throws if they do not fit the spec.
async function checked(tool, args, text, spec, at) {
  if (text.length > CHECKED) return text;
  const { wrong, hint, drop, forms } = (check ?? (await checker())).refuse(JSON.parse(text), spec);
  if (wrong) throw thrown(at, refusal(wrong, tool, hint));
  if (drop.length === 0 && Object.keys(forms).length === 0) return text;
  const members = Object.entries(args instanceof Map ? Object.fromEntries(args) : args).map(([name, value]) => [forms[name] ?? name, value]);
  return encoded(Object.fromEntries(members.filter(([name]) => !drop.includes(name))));
}

let listeners; // created on first use, since it slows down every promise

// Reports how far the calls in body are.
export function progress(listener, body) {
  if (typeof listener !== "function" || typeof body !== "function") throw new TypeError("progress takes two functions: await progress((p) => console.log(p), () => f({ ... }))");
  listeners ??= new AsyncLocalStorage();
  return guarded((async () => listeners.run(listener, body))(), "progress");
}

// Passes progress to the listener. An error in the listener does not fail the call.
export async function tell(waiting, { progress, total, message = "" }) {
  try {
    await waiting.listener?.({ progress, total, message, tool: waiting.tool });
  } catch (error) {
    waiting.listener = undefined;
    console.error(`progress of ${waiting.tool}: ${error}`);
  }
}

// Returns options; throws if they are not an object, or have a name that is not in known.
function chosen(name, options, known) {
  const wrong = options === null || typeof options !== "object" ? "" : Object.keys(options).find((key) => !known.includes(key));
  if (wrong !== undefined) throw new TypeError(`${name} has no option ${JSON.stringify(wrong || options)}; options are an object of: ${known.join(", ")}`);
  return options;
}

async function _search_tools(query, options = {}) {
  const asked = typeof query === "object" && query !== null ? query : { query, ...chosen("search_tools", options, ["detail", "upstream", "limit"]) };
  const told = Object.entries(asked).filter(([, value]) => value !== undefined && value !== null);
  return call("sallyport.search_tools", { ...Object.fromEntries(told), language: "typescript" });
}

// Matches the tool id in the source of a wrapper; functions of this module are matched by name in idOf.
const CALLS = /\breturn \(?(?:0, )?[\w$.]*call\w*\)?\(\s*"([^"]+)"/;

function idOf(source) {
  const own = /\breturn runtime\d*\.(\w+)\(/.exec(source)?.[1];
  return CALLS.exec(source)?.[1] ?? (own && "sallyport." + own);
}

async function _describe(tool) {
  const id = typeof tool === "function" ? idOf(Function.prototype.toString.call(tool)) : tool;
  if (typeof id !== "string") throw new TypeError(`describe takes a wrapper or "upstream.name", not a ${typeof tool}`);
  return call("sallyport.describe", { tool: id, language: "typescript" });
}

async function _save_skill(name, options = {}) {
  const asked = chosen("save_skill", options, ["code", "description", "language", "params", "from_execution", "tests", "scope", "groups"]);
  const told = Object.entries({ language: asked.code && "typescript", ...asked }).filter(([, value]) => value !== undefined && value !== null);
  return call("sallyport.save_skill", { name, ...Object.fromEntries(told) });
}

async function _load_skill(name, version = undefined) {
  return call("sallyport.load_skill", version === undefined ? { name } : { name, version });
}

async function _list_skills(query = undefined) {
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

// Runs functions, at most limit at once. Promises are accepted too, but are already running.
async function _parallel(...given) {
  const { limit = 16, errors = false } = isOptions(given.at(-1)) ? given.pop() : {};
  const one = given.length === 1 && typeof given[0] === "object" && typeof given[0]?.[Symbol.iterator] === "function";
  const list = one ? [...given[0]] : given;
  const wrong = list.findIndex((value) => typeof value !== "function" && !isPromise(value));
  const running = list.filter(isPromise);
  for (const promise of running) Promise.resolve(promise).catch(() => {}); // reported in order below
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

// Returns the first error in order, with a note about the others.
function first(failed, all, started) {
  const error = failed.get(Math.min(...failed.keys()));
  if (error instanceof Error && (failed.size > 1 || started < all)) {
    const note = `parallel: ${failed.size} of ${all} functions failed, ${all - started} were not started`;
    Object.defineProperty(error, "notes", { value: [...(error.notes ?? []), note], configurable: true });
  }
  return error;
}

const own = (name, run, effect) => (...given) => guarded(run(...given), name, effect);

export const search_tools = own("search_tools", _search_tools);
export const describe = own("describe", _describe);
export const load_skill = own("load_skill", _load_skill);
export const list_skills = own("list_skills", _list_skills);
export const parallel = own("parallel", _parallel);
export const save_skill = own("save_skill", _save_skill, true);
export const emit = own("emit", _emit, true);

export function shape_of(value) {
  return lazy("./shapes.cjs").shape_of(value, Blob);
}

const kit = { Blob, ToolError, encoded, parse };

async function _emit(thing, options = {}) {
  const at = new Error();
  const { name, mime } = chosen("emit", options, ["name", "mime"]);
  thing = await (isPromise(thing) ? thing : undefined) ?? thing;
  if (Array.isArray(thing) && thing.some((item) => item instanceof Blob)) {
    for (const item of thing) await _emit(item, item instanceof Blob ? options : {}); // results of tools mix texts and pictures
    return;
  }
  if (thing instanceof globalThis.Blob) thing = new Blob(new Uint8Array(await thing.arrayBuffer()), thing.type, "", thing.name);
  const block = lazy("./media.cjs").content(thing, name, mime, kit);
  if (!link?.ask) throw new ToolError("emit works only inside execute_code: no client to send to", "invalid", "sallyport.emit");
  const answer = await link.ask("emit", `"content":${JSON.stringify(block)}`, "sallyport.emit");
  if (answer.error) throw thrown(at, failure(answer.error, "sallyport.emit"));
}

export function save(name, value) {
  lazy("./saved.cjs").save(name, value, kit);
}

export function load(name) {
  return lazy("./saved.cjs").load(name, kit);
}
