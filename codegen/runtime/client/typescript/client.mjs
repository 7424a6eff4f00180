// The transport for programs outside of a sandbox: MCP over HTTP to a running gateway
// (sallyport serve --http). Each call is one request, without retries.

import { request as plain } from "node:http";
import { request as secure } from "node:https";
import "./place.mjs";
import media from "./media.cjs";
import saved from "./saved.cjs";
import shapes from "./shapes.cjs";
import * as api from "./api.mjs";
import { parse } from "./exact.mjs";

const VERSION = "2026-07-28"; // of MCP: the first one with stateless requests
const MOST = 64 << 20; // maximum bytes of one response
const LINES = 100_000; // maximum lines of one event
const META = "io.modelcontextprotocol/";
const START = "start it: sallyport serve --http 127.0.0.1:8080, and say where it is with SALLYPORT_URL or connect({ url })";

class Failed extends Error {
  constructor(kind, message, hint = "", retryable = false) {
    super(message);
    this.error = { kind, message, hint, retryable };
  }
}

class Gateway {
  constructor(url, token) {
    this.url = (url || process.env.SALLYPORT_URL || "http://127.0.0.1:8080").replace(/\/+$/, "").replace(/\/mcp(\/direct)?$/, "");
    this.token = token || process.env.SALLYPORT_TOKEN || "";
    this.next = 1;
    if (/^https?:\/\/[^/]*@/.test(this.url)) { // errors would show the credentials
      throw new api.ToolError("the address of a gateway has no login in it", "invalid", "", "the token goes to SALLYPORT_TOKEN, or connect({ token })");
    }
    if (!/^https?:\/\/[^/]/.test(this.url) || !URL.canParse(this.url)) {
      throw new api.ToolError(`"${this.url}" is no address of a gateway`, "invalid", "", "write it as http://127.0.0.1:8080");
    }
  }

  // Returns the answer with the value in {"result": VALUE}, if the spec says that results are wrapped.
  unwrap(answer, spec) {
    const json = answer.value?.json;
    if (!JSON.parse(spec).wrap || !isObject(json) || Object.keys(json).length !== 1 || !("result" in json)) return answer;
    return { value: { json: json.result } };
  }

  // Makes one call with args as JSON text, and returns a frame of the bridge protocol: a value or an error.
  async call(tool, args, listener) {
    const dot = tool.indexOf(".");
    const [upstream, name] = [tool.slice(0, dot), tool.slice(dot + 1)];
    try {
      if (upstream === "sallyport") return { value: valueOf(await this.own(name, args, tool)) };
      return { value: await this.offered(upstream, name, args, { tool, listener }) };
    } catch (error) {
      if (error instanceof Failed) return { error: error.error };
      throw error;
    }
  }

  async offered(upstream, name, args, waiting) {
    if (name === "resources/read") {
      const uri = `sallyport://${upstream}/${JSON.parse(args).uri ?? ""}`;
      return contents(await this.ask("/mcp/direct", name, uri, `"uri":${JSON.stringify(uri)}`, waiting));
    }
    if (name === "prompts/get") {
      const { name: prompt = "", arguments: more = {} } = JSON.parse(args);
      const title = `${upstream}.${prompt}`;
      const { resultType, ...json } = await this.ask("/mcp/direct", name, title, `"name":${JSON.stringify(title)},"arguments":${JSON.stringify(more)}`, waiting);
      return { json };
    }
    if (name.includes("/")) throw new Failed("invalid", `${waiting.tool} works inside of execute_code only`, "a gateway lists what all upstreams offer at once");
    return valueOf(await this.ask("/mcp/direct", "tools/call", waiting.tool, `"name":${JSON.stringify(waiting.tool)},"arguments":${args}`, waiting));
  }

  // Calls a function of the gateway itself.
  own(name, args, tool) {
    if (name === "describe") args = JSON.stringify({ query: JSON.parse(args).tool, detail: "full", limit: 1, language: "typescript" });
    return this.ask("/mcp", "tools/call", "search_tools", `"name":"search_tools","arguments":${args}`, { tool });
  }

  async ask(path, method, name, params, waiting) {
    if (/[\p{C}\p{Zl}\p{Zp}]/u.test(name)) throw new Failed("invalid", `${JSON.stringify(name).slice(0, 100)} has characters that no name has`); // the name is also sent in a header
    const id = this.next++;
    const meta = { [`${META}protocolVersion`]: VERSION, [`${META}clientCapabilities`]: {}, [`${META}clientInfo`]: { name: "sallyport-client", version: "1" } };
    if (waiting.listener) meta.progressToken = id;
    const body = Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params},"_meta":${JSON.stringify(meta)}}}`);
    const headers = {
      "Content-Type": "application/json", Accept: "application/json, text/event-stream", "Content-Length": body.length,
      "Mcp-Protocol-Version": VERSION, "Mcp-Method": method, "Mcp-Name": Buffer.from(name).toString("latin1"),
    };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const response = await this.post(path, headers, body);
    try {
      return await resultOf(response, id, waiting, this.token !== "");
    } catch (error) {
      if (error instanceof Failed) throw error;
      if (!(error instanceof TypeError || error instanceof SyntaxError)) throw this.broke(error);
      throw new Failed("internal", `what answers at ${this.url} is no gateway of sallyport`, "whether the call was made is not known");
    } finally {
      response.destroy();
    }
  }

  post(path, headers, body) {
    return new Promise((resolve, reject) => {
      const asked = (this.url.startsWith("https:") ? secure : plain)(this.url + path, { method: "POST", headers, agent: false }, resolve);
      let connected = false;
      asked.on("socket", (socket) => {
        socket.setTimeout(10_000, () => connected || asked.destroy(new Error("it takes too long")));
        socket.once("connect", () => {
          connected = true;
          socket.setTimeout(0); // the gateway limits the duration of a call
        });
      });
      asked.on("error", (error) => reject(connected ? this.broke(error) : new Failed("upstream", `no gateway answers at ${this.url}: ${error.message || error.code}`, START, true)));
      asked.end(body);
    });
  }

  broke(error) {
    return new Failed("internal", `the connection to the gateway at ${this.url} broke: ${error.message}`, "whether the call was made is not known");
  }
}

// Returns the result of the request, or throws its error.
async function resultOf(response, id, waiting, hasToken) {
  if (response.statusCode === 401) {
    const hint = "set SALLYPORT_TOKEN, or connect({ token }), to one of http.tokens in the gateway's upstreams.yaml";
    throw new Failed("denied", hasToken ? "the gateway refuses this token" : "the gateway asks for a token", hint);
  }
  const isStream = /^text\/event-stream/.test(response.headers["content-type"] ?? "");
  for await (const message of isStream ? events(response) : whole(response)) {
    if (!isObject(message)) throw new TypeError("a message is an object");
    if (message.method === "notifications/progress" && message.params?.progressToken === id) await api.tell(waiting, message.params);
    else if (message.error) throw refused(message.error);
    else if (message.id === id && message.result) return succeeded(message.result);
  }
  throw new Failed("internal", "the gateway ended its answer too early", "whether the call was made is not known");
}

async function* whole(response) {
  const chunks = [];
  let size = 0;
  for await (const chunk of response) {
    if ((size += chunk.length) > MOST) throw tooLong();
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString("utf8");
  let message;
  try {
    message = parse(text);
  } catch {}
  if (message === null || typeof message !== "object") {
    const hint = response.statusCode === 404 ? START : "";
    throw new Failed(response.statusCode === 403 ? "denied" : "internal", `the gateway answers ${response.statusCode}: ${text.trim().slice(0, 300)}`, hint);
  }
  yield message;
}

// Yields the messages of an event stream.
async function* events(response) {
  let rest = "";
  let data = [];
  let size = 0; // since the last event
  const decoder = new TextDecoder();
  for await (const chunk of response) {
    if ((size += chunk.length) > MOST || data.length > LINES) throw tooLong();
    const lines = decoder.decode(chunk, { stream: true }).split("\n");
    lines[0] = rest + lines[0];
    rest = lines.pop();
    for (let line of lines) {
      line = line.replace(/\r$/, "");
      if (line.startsWith("data:")) data.push(line.slice(5));
      else if (line === "") {
        const text = data.join("\n").trim();
        [data, size] = [[], 0];
        if (text) yield parse(text);
      }
    }
  }
}

function tooLong() {
  return new Failed("limit", `the answer is longer than ${MOST >> 20} MiB`, "ask for less at once");
}

function refused({ message: told, code }) {
  const message = String(told ?? "the gateway refuses the call");
  const kind = message.startsWith("unknown ") ? "not_found" : code === -32602 || code === -32600 ? "invalid" : "upstream";
  return new Failed(kind, message);
}

function succeeded(result) {
  if ((result.resultType ?? "complete") !== "complete") throw new Failed("failed", "the tool asks a person something, and nobody sits behind a program");
  if (result.isError !== true) {
    if (![result.content ?? [], result.contents ?? []].every(Array.isArray)) throw new TypeError("content is a list");
    return result;
  }
  const told = result._meta?.["sallyport/error"] ?? {};
  const texts = (Array.isArray(result.content) ? result.content : []).map((block) => block?.text).filter((text) => typeof text === "string" && text);
  throw new Failed(String(told.kind ?? "failed"), String(told.message || "") || texts.join("\n") || "the tool failed and does not say why", String(told.hint ?? ""), told.retryable === true);
}

// Returns the value of a result for programs, by the rules of tool.Result.Value, tested by the same cases.
export function valueOf(result) {
  if (result.structuredContent !== undefined && result.structuredContent !== null) return { json: result.structuredContent };
  const blocks = Array.isArray(result.content) ? result.content : [];
  if (blocks.length === 1 && blocks[0]?.type === "text" && /^[ \t\r\n]*(true|false)[ \t\r\n]*$/.test(blocks[0].text)) return { json: JSON.parse(blocks[0].text) };
  return one(blocks.map(block));
}

const one = (blocks) => (blocks.length === 1 ? blocks[0] : blocks.length ? { parts: blocks } : { json: null });
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const text = (holder, name) => (typeof holder[name] === "string" ? holder[name] : "");

function block(given) {
  const kind = isObject(given) ? given.type : undefined;
  if (kind === "text" && typeof given.text === "string") return { json: parsed(given.text) };
  if (kind === "image" || kind === "audio") return blob(given.data, text(given, "mimeType"), "") ?? { json: given };
  if (kind === "resource" && isObject(given.resource)) {
    const inner = given.resource;
    if ("blob" in inner) return blob(inner.blob, text(inner, "mimeType"), text(inner, "uri")) ?? { json: given };
    return { json: Object.fromEntries(["uri", "mimeType", "text"].filter((name) => text(inner, name)).map((name) => [name, inner[name]])) };
  }
  return { json: given };
}

// Returns the content of a resource. Text stays text.
function contents(result) {
  const given = Array.isArray(result.contents) ? result.contents : [];
  return one(given.map((inner) => (isObject(inner) ? (blob(inner.blob, text(inner, "mimeType"), text(inner, "uri")) ?? { json: text(inner, "text") }) : { json: inner })));
}

function parsed(given) {
  const trimmed = given.trim();
  if (/^[ \t\r\n]*null[ \t\r\n]*$/.test(given)) return null;
  if (!/^[{[]/.test(trimmed) || given.startsWith("\ufeff") || given.endsWith("\ufeff")) return given;
  try {
    return parse(trimmed);
  } catch {
    return given;
  }
}

function blob(given, mime, uri) {
  if (typeof given !== "string") return undefined;
  const data = given.replace(/[\r\n]/g, "");
  const fits = data.includes("=") ? /^[A-Za-z0-9+/]*={1,2}$/.test(data) && data.length % 4 === 0 : /^[A-Za-z0-9+/]*$/.test(data) && data.length % 4 !== 1;
  return fits ? { blob: { data, mime, uri } } : undefined;
}

let gateway; // read from the environment at the first call

// Sets the gateway. Defaults: SALLYPORT_URL (or http://127.0.0.1:8080) and SALLYPORT_TOKEN.
export function connect({ url, token } = {}) {
  gateway = new Gateway(url, token);
}

api.provide({ "./media.cjs": media, "./saved.cjs": saved, "./shapes.cjs": shapes }); // a bundle cannot read files
api.use({ call: (...args) => (gateway ??= new Gateway()).call(...args) });
globalThis[Symbol.for("sallyport")] = Object.freeze({ ...api, connect, valueOf });
