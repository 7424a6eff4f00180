// Suggests corrections for common mistakes with wrappers and results.

const { existsSync, readdirSync } = require("node:fs");
const { builtinModules } = require("node:module");
const { nearest } = require("./nearest.cjs");

const SHAPE = 'console.log(shape_of(value)) shows what a value is (import { shape_of } from "sallyport")';
const OURS = ["search_tools", "describe", "parallel", "shape_of", "emit", "save", "load", "iterate", "progress", "call", "ToolError", "Blob"];
const ELSEWHERE = { True: "true", False: "false", None: "null", print: "console.log(...)", final_answer: "console.log(...)", len: "value.length", str: "String(...)", int: "Number(...)", json: "JSON.stringify(...)" };
const TEXTS = /\.(split|trim|match|matchAll|replace|replaceAll|startsWith|endsWith|toLowerCase|toUpperCase|substring|substr|charAt|padStart|padEnd|localeCompare)$/;
const LISTS = /\.(map|filter|forEach|slice|reduce|find|some|every|join|sort|flatMap|push|includes|entries)$/;

// [pattern, hint]; the first match applies.
const SAYINGS = [
  [/Cannot find (package|module)/, () => "only node's own modules, servers and sallyport can be imported"],
  [/heap out of memory|Array buffer allocation failed|Invalid (string|array) length/, () => "the sandbox's memory limit is reached: work on smaller pieces"],
  [/^(\w+) is not defined$/, (found) => missing(found[1])],
  [/^Cannot read properties of (undefined|null) \(reading '(.+)'\)/, (found, open) => awaited(open) || `what ".${found[2]}" is taken of is ${found[1]}: ${SHAPE}`],
  [/ is not (async )?iterable|undefined is not a function/, (found, open) => awaited(open) || `it is no list: ${SHAPE}`],
  [/^(.+) is not a function/, (found, open) => notFunction(found[1], open)],
  [/is not valid JSON|Unexpected (token|end of JSON input)/, () => "results that are JSON are values already: drop JSON.parse"],
  [/fetch failed|ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ENETUNREACH/, () => "the sandbox has no network: call a tool instead, search_tools finds one"],
  [/^ENOENT.* '(.+)'/, (found) => files(found[1])],
  [/^ENOTDIR.* '(.+)'/, (found) => files(found[1])],
  [/^(EROFS|EACCES|EPERM)/, () => "files can be written in /workspace and /tmp"],
  [/^ENOSPC/, () => full()],
  [/^EFBIG/, () => "a file cannot be as large here: write several, or keep less"],
  [/^EMFILE/, () => "too many files are open at once: close them, or open a few at a time"],
  [/EAGAIN|ERR_WORKER_INIT_FAILED/, () => "too many processes and threads at once: let some end first"],
  [/^Assignment to constant/, () => "declare it with let"],
  [/serialize a BigInt|mix BigInt/, () => "make it a number or a text first: Number(value), String(value)"],
];

// Calls in flight besides the failed one may belong to Promise.all: they are not missing an await.
const TOGETHER = /^\s+at async Promise\.(all|allSettled|any|race) /m;

exports.hint = (error, message, underWay) => {
  const open = TOGETHER.test(error?.stack ?? "") ? [] : underWay;
  if (error?.name === "ToolError" && typeof error.code === "string") return ofCall(error);
  if (error?.hint) return String(error.hint);
  for (const [pattern, say] of SAYINGS) {
    const found = pattern.exec(message);
    if (found) return say(found, open);
  }
  return "";
};

function ofCall({ hint, tool, code, retryable }) {
  return (hint || (tool ? `${tool}: code ${code}` : "")) + (retryable ? "; the same call may be made again" : "");
}

function full() {
  const [workspace, tmp] = ["/workspace", "/tmp"].map((path) => require("node:fs").statfsSync(path));
  const size = (room) => `${Math.floor((room.blocks * room.bsize) / 2 ** 20)} MiB`;
  return `/workspace holds ${size(workspace)}${workspace.files ? ` and ${workspace.files} files` : ""}, /tmp ${size(tmp)}: remove files, or keep less`;
}

function awaited(open) {
  return open.length ? `a call returns a promise, and that of ${open[0]} is not settled: write await before the call` : "";
}

function notFunction(text, open) {
  const name = /(\w+)\)?$/.exec(text)?.[1] ?? "";
  if (LISTS.test(text)) return awaited(open) || `it is no list: ${SHAPE}`;
  const upstream = folders().find((each) => name === each || name === each + "_exports");
  if (upstream) return `write: import { TOOL } from "servers/${upstream}"`;
  return awaited(open) || (TEXTS.test(text) ? `it is no text: ${SHAPE}` : text.includes(".") ? `it has no such function: ${SHAPE}` : "");
}

function missing(name) {
  if (Object.hasOwn(ELSEWHERE, name)) return `in TypeScript: ${ELSEWHERE[name]}`;
  if (builtinModules.includes(name)) return `write: import * as ${name} from "node:${name}"`;
  if (OURS.includes(name)) return `write: import { ${name} } from "sallyport"`;
  return home(name) || home(name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, "_").toLowerCase());
}

function home(name) {
  const homes = [];
  for (const upstream of folders()) {
    if (upstream === name) return `write: import { ${name} } from "servers"`;
    if (existsSync(`/servers/${upstream}/${name}.ts`)) homes.push(`"servers/${upstream}"`);
  }
  return homes.length ? `write: import { ${name} } from ${homes[0]}${homes.length > 1 ? ` (or from ${homes.slice(1, 4).join(", ")})` : ""}` : "";
}

function folders() {
  return readdirSync("/servers", { withFileTypes: true }).filter((each) => each.isDirectory()).map((each) => each.name);
}

function files(path) {
  const wrappers = /^(?:\.\/)?servers(\/.*)?$/.exec(path);
  if (wrappers) return `the wrappers are in "/servers${wrappers[1] ?? ""}"; search_tools finds tools in fewer steps`;
  const other = /^\/(?:mnt\/data|mnt\/user-data\/\w+|home\/\w+|content)\/(.+)$/.exec(path);
  if (other) return `files are in /workspace: "/workspace/${other[1]}"`;
  const names = readdirSync("/workspace").sort().slice(0, 20);
  const near = nearest(path.split("/").at(-1), names);
  const told = near ? `did you mean ${near}?` : names.length ? `in /workspace are: ${names.join(", ")}` : "/workspace is empty";
  return /^([^/]|\/(workspace|tmp)\/)/.test(path) ? told : `only tools reach files outside of the sandbox; ${told}`;
}
