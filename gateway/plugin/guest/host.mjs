// Runs the functions of a plugin for the gateway: one JSON object to a line, over standard input and output, as host.py
// describes it. What the plugin prints goes to standard error.
import { createInterface } from "node:readline";
import { Console } from "node:console";
import { writeSync } from "node:fs";

globalThis.console = new Console(process.stderr, process.stderr);
process.stdout.write = process.stderr.write.bind(process.stderr);

function send(message) {
  let data = Buffer.from(JSON.stringify(message) + "\n");
  while (data.length > 0) {
    try {
      data = data.subarray(writeSync(1, data));
    } catch (e) {
      if (e.code !== "EAGAIN") throw e;
    }
  }
}

function fault(error) {
  const found = { type: error?.name ?? "Error", message: String(error?.message ?? error).slice(0, 2000) };
  const place = /(?:program\.ts|main\.ts|plugin\/code\/[^:]*):(\d+)/.exec(String(error?.stack ?? ""));
  if (place) Object.assign(found, { file: "main.ts", line: Number(place[1]) });
  return found;
}

const asked = new Map();
let last = 0;
let secrets = {};

globalThis[Symbol.for("sallyport.plugin")] = {
  secret(name) {
    if (!Object.hasOwn(secrets, name)) throw new Error(`no secret ${name}: name it in plugin.yaml, and grant it in upstreams.yaml`);
    return secrets[name];
  },
  fetch(request) {
    return new Promise((resolve, reject) => {
      asked.set(++last, { resolve, reject });
      send({ ask: last, fetch: request });
    });
  },
};

function answered(message) {
  const waiting = asked.get(message.answer);
  asked.delete(message.answer);
  if (waiting === undefined) return;
  if ("error" in message) waiting.reject(new Error(message.error));
  else waiting.resolve(message.value);
}

async function load(init) {
  secrets = init.secrets ?? {};
  const main = await import("/plugin/code/main.mjs");
  const functions = {};
  for (const name of init.functions) if (typeof main[name] === "function") functions[name] = main[name];
  return functions;
}

async function run(functions, message) {
  try {
    const named = functions[message.run];
    const args = message.args ?? (message.order ?? []).map((name) => message.kwargs[name]);
    const value = message.each ? await Promise.all(message.each.map((text) => named(text))) : await named(...args);
    send({ id: message.id, value: value === undefined ? null : value });
  } catch (e) {
    send({ id: message.id, fault: fault(e) });
  }
}

let functions;
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if ("answer" in message) answered(message);
  else if ("init" in message) {
    functions = load(message.init);
    functions.then(
      (found) => send({ ready: Object.fromEntries(Object.keys(found).map((name) => [name, {}])) }),
      (e) => send({ fault: fault(e) }),
    );
  } else functions.then((found) => run(found, message), () => {});
}
process.exit(0);
