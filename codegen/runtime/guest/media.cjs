// Implements emit: converts a value to a block of MCP content. media.py has the same rules.

const fs = require("node:fs");
const { basename } = require("node:path");
const { inspect } = require("node:util");

const MOST = 4 << 20; // bytes of one block, and of a text: docs/reference/bridge.md
const MOST_TEXT = 64 << 10;
const ROWS = 50;
const COLUMNS = 20;
const CELL = 200;
const TABLE = 20_000; // maximum characters of a table

const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const AUDIO = ["audio/wav", "audio/mpeg", "audio/ogg", "audio/flac"];
const MAGIC = [
  ["\x89PNG\r\n\x1a\n", "image/png"], ["\xff\xd8\xff", "image/jpeg"], ["GIF87a", "image/gif"], ["GIF89a", "image/gif"],
  ["%PDF-", "application/pdf"], ["ID3", "audio/mpeg"], ["\xff\xfb", "audio/mpeg"], ["\xff\xf3", "audio/mpeg"], ["\xff\xf2", "audio/mpeg"],
  ["OggS", "audio/ogg"], ["fLaC", "audio/flac"], ["PK\x03\x04", "application/zip"], ["\x1f\x8b", "application/gzip"],
]; // prettier-ignore
const ENDINGS = {
  png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp", svg: "image/svg+xml",
  pdf: "application/pdf", wav: "audio/wav", mp3: "audio/mpeg", ogg: "audio/ogg", flac: "audio/flac", zip: "application/zip", gz: "application/gzip",
  txt: "text/plain", log: "text/plain", md: "text/markdown", csv: "text/csv", tsv: "text/tab-separated-values", html: "text/html", htm: "text/html",
  css: "text/css", xml: "application/xml", json: "application/json", jsonl: "application/jsonl", yaml: "application/yaml", yml: "application/yaml",
  js: "text/javascript", ts: "text/typescript", py: "text/x-python", mp4: "video/mp4",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}; // prettier-ignore

// Returns the content of an emit frame.
exports.content = (thing, name, mime, kit) => {
  if (typeof thing === "string" && !isFile(thing)) {
    return name || mime ? block(Buffer.from(thing), name, mime || byEnding(name) || "text/plain", "", kit) : text(thing, kit);
  }
  if (typeof thing === "string" || thing instanceof URL) return block(read(thing, kit), name || basename(String(thing)), mime, "", kit);
  if (thing instanceof kit.Blob) return block(Buffer.from(thing.data), name || thing.name, mime || thing.mime, thing.uri, kit);
  if (thing instanceof Uint8Array || thing instanceof ArrayBuffer) return block(Buffer.from(thing), name, mime, "", kit);
  if (isTable(thing)) return text(table(thing), kit);
  if (["object", "number", "boolean", "bigint"].includes(typeof thing) && thing !== null) return text(json(thing, 1), kit);
  throw new TypeError(`${thing === null ? "null" : typeof thing} cannot be emitted: a text, bytes, a Blob, a path, or rows (a list of objects or lists)`);
};

function isFile(text) {
  return text.length < 1000 && !/[\n\0]/.test(text) && (fs.statSync(text, { throwIfNoEntry: false })?.isFile() ?? false);
}

function read(path, kit) {
  const { size } = fs.statSync(path);
  if (size > MOST) throw tooLarge(size, MOST, "", kit);
  return fs.readFileSync(path);
}

// Returns an image or audio block, or a resource for other types.
function block(data, name, mime, uri, kit) {
  if (data.length > MOST) throw tooLarge(data.length, MOST, "", kit);
  mime = mime || sniffed(data) || byEnding(name) || (decoded(data) === undefined ? "application/octet-stream" : "text/plain");
  const type = IMAGES.includes(mime) ? "image" : AUDIO.includes(mime) ? "audio" : "resource";
  const made = { type, mimeType: mime, name: name || (type === "resource" ? "file" : type) + ending(mime), uri: uri || "" };
  const text = type === "resource" && isText(mime) ? decoded(data) : undefined;
  return text === undefined ? { ...made, data: data.toString("base64") } : { ...made, text };
}

function text(text, kit) {
  const size = Buffer.byteLength(text);
  if (size > MOST_TEXT) throw tooLarge(size, MOST_TEXT, 'emit it as a file: await emit(text, { name: "report.txt" })', kit);
  return { type: "text", text: text || "(empty)" };
}

function tooLarge(size, most, hint, { ToolError }) {
  const told = [size, most].map((n) => n.toLocaleString("en-US"));
  return new ToolError(`${told[0]} bytes are too much: at most ${told[1]} can be emitted at once`, "limit", "sallyport.emit", hint || "make it smaller: fewer pixels, rows or seconds, or compressed");
}

function sniffed(data) {
  const start = data.subarray(0, 12).toString("latin1");
  if (start.startsWith("RIFF")) return { WEBP: "image/webp", WAVE: "audio/wav" }[start.slice(8)] ?? "";
  return MAGIC.find(([magic]) => start.startsWith(magic))?.[1] ?? "";
}

function byEnding(name) {
  const end = /\.([^.]+)$/.exec(name ?? "")?.[1].toLowerCase() ?? "";
  return Object.hasOwn(ENDINGS, end) ? ENDINGS[end] : "";
}

function ending(mime) {
  const end = Object.keys(ENDINGS).find((each) => ENDINGS[each] === mime);
  return end ? "." + end : "";
}

function isText(mime) {
  return mime.startsWith("text/") || /(\+xml|\+json|\/json|\/xml|\/yaml|\/jsonl)$/.test(mime);
}

function decoded(data) {
  if (data.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    return undefined;
  }
}

const isRow = (row) => typeof row === "object" && row !== null && !Array.isArray(row);

function isTable(rows) {
  return Array.isArray(rows) && rows.length > 0 && (rows.every(isRow) || rows.every(Array.isArray));
}

// Returns the rows as a truncated Markdown table.
function table(rows) {
  let heads;
  let shown = rows.slice(0, ROWS);
  let total = rows.length;
  if (isRow(rows[0])) {
    heads = [...new Set(shown.flatMap((row) => Object.keys(row)))];
    shown = shown.map((row) => heads.map((head) => row[head]));
  } else if (rows[0].length && rows[0].every((cell) => typeof cell === "string")) {
    [heads, shown, total] = [rows[0], rows.slice(1, ROWS + 1), total - 1];
  } else {
    heads = new Array(Math.max(...shown.map((row) => row.length))).fill("");
  }
  const made = [line(heads), "|" + " --- |".repeat(Math.min(heads.length, COLUMNS))];
  for (const row of shown) {
    made.push(line(row));
    if (made.join("").length > TABLE) break;
  }
  const left = total - (made.length - 2);
  if (left > 0) made.push(`\n... and ${left.toLocaleString("en-US")} more rows`);
  if (heads.length > COLUMNS) made.push(`\n... and ${heads.length - COLUMNS} more columns: ${heads.slice(COLUMNS, COLUMNS + 10).map(cell).join(", ")}`);
  return made.join("\n");
}

function line(cells) {
  return "| " + cells.slice(0, COLUMNS).map(cell).join(" | ") + " |";
}

function cell(value) {
  const text = value === null || value === undefined ? "" : typeof value === "string" ? value : json(value);
  const plain = text.slice(0, 2 * CELL).split(/\s+/).filter(Boolean).join(" ").replaceAll("\\", "\\\\").replaceAll("|", "\\|");
  return plain.length <= CELL ? plain : plain.slice(0, CELL - 1).replace(/\\+$/, "") + "…";
}

function json(value, indent) {
  try {
    return JSON.stringify(value, null, indent) ?? String(value);
  } catch {
    return inspect(value);
  }
}
