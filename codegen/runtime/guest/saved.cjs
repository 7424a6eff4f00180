// Implements save and load: one file per value, which the guests of all languages can read.
// The first line of a file is a header: {"type":"json"}, {"type":"bytes"} or
// {"type":"blob","mime":...,"name":...,"uri":...}. The content follows.

const fs = require("node:fs");

const FOLDER = `${process.env.SALLYPORT_WORKSPACE ?? "/workspace"}/.saved`;
const isBytes = (value) => value instanceof Uint8Array || value instanceof ArrayBuffer;

exports.save = (name, value, kit) => {
  const path = file(name, "save", kit);
  const { head, data } = packed(value, kit);
  const temporary = `${FOLDER}/.${process.pid}-${process.hrtime.bigint()}`;
  fs.mkdirSync(FOLDER, { recursive: true });
  try {
    fs.writeFileSync(temporary, Buffer.concat([Buffer.from(JSON.stringify(head) + "\n"), data]));
    fs.renameSync(temporary, path); // atomic
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
};

exports.load = (name, kit) => {
  const path = file(name, "load", kit);
  if (!fs.existsSync(path)) throw missing(name, kit);
  const content = fs.readFileSync(path);
  const end = content.subarray(0, 2000).indexOf("\n");
  try {
    return unpacked(JSON.parse(content.subarray(0, end).toString()), content.subarray(end + 1), kit);
  } catch {
    throw new kit.ToolError(`what is saved as ${JSON.stringify(name)} was not written by save`, "invalid", "sallyport.load");
  }
};

function packed(value, { Blob, encoded }) {
  if (value instanceof Blob) return { head: { type: "blob", mime: value.mime, name: value.name, uri: value.uri }, data: value.data };
  if (isBytes(value)) return { head: { type: "bytes" }, data: Buffer.from(value) };
  if (value === undefined || typeof value === "function" || typeof value?.then === "function") {
    throw new TypeError(`a ${typeof value === "object" ? "promise" : typeof value} cannot be saved${typeof value === "object" ? "; await it first" : ""}`);
  }
  refuseInner(value, Blob, new Set());
  return { head: { type: "json" }, data: Buffer.from(text(value, encoded)) };
}

function text(value, encoded) {
  try {
    return encoded({ value }).slice('{"value":'.length, -1);
  } catch (error) {
    throw new TypeError(`value cannot be saved: ${error.message.replace(/^argument [^:]*: /, "")}`);
  }
}

function refuseInner(value, Blob, seen) {
  if (typeof value !== "object" || value === null || seen.has(value)) return;
  if (isBytes(value) || value instanceof Blob) throw new TypeError(`save keeps ${value.constructor.name} only as a whole value: save it under a name of its own`);
  seen.add(value);
  for (const inner of value instanceof Map || value instanceof Set ? value.values() : Object.values(value)) refuseInner(inner, Blob, seen);
}

function unpacked(head, data, { Blob, parse }) {
  if (head.type === "blob") return new Blob(new Uint8Array(data), head.mime, head.uri, head.name);
  if (head.type === "bytes") return new Uint8Array(data);
  if (head.type === "json") return parse(data.toString());
  throw new Error("unknown type");
}

function file(name, verb, { ToolError }) {
  const fit = typeof name === "string" && /^[^./\\][^/\\]*$/u.test(name) && !/[\p{C}\p{Zl}\p{Zp}]/u.test(name) && [...name].length <= 60;
  if (fit) return `${FOLDER}/${name}`;
  const hint = "a plain file name of at most 60 characters, with no slash and no dot in front";
  throw new ToolError(`${verb}: ${String(JSON.stringify(name)).slice(0, 80)} is no name`, "invalid", "sallyport." + verb, hint);
}

function missing(name, { ToolError }) {
  const names = fs.existsSync(FOLDER) ? fs.readdirSync(FOLDER).filter((each) => !each.startsWith(".")).sort() : [];
  const near = require("./nearest.cjs").nearest(name, names);
  const hint = (near ? `did you mean ${near}? ` : "") + (names.length ? "saved are: " + names.slice(0, 20).join(", ") : "nothing is saved yet");
  return new ToolError(`nothing is saved as ${JSON.stringify(name)}`, "not_found", "sallyport.load", hint);
}
