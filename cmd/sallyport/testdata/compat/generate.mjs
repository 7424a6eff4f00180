// node generate.mjs SALLYPORT RUNSC writes home.tar.gz beside this file: see README.md.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";

const [binary, runsc] = process.argv.slice(2).map((each) => path.resolve(each));
const here = import.meta.dirname;
const home = "/tmp/sallyport-compat"; // the data has it in places where nothing reads it
fs.rmSync(home, { recursive: true, force: true });
fs.mkdirSync(home);
const dirs = Object.fromEntries(["config", "data", "cache", "run", "tmp", "bin"].map((name) => [name, path.join(home, name)]));
const env = {
  PATH: `${dirs.bin}:${process.env.PATH}`, HOME: home, TMPDIR: dirs.tmp, RUNSC: runsc, XDG_CONFIG_HOME: dirs.config, XDG_DATA_HOME: dirs.data,
  XDG_CACHE_HOME: dirs.cache, XDG_RUNTIME_DIR: dirs.run, DBUS_SESSION_BUS_ADDRESS: "unix:path=/nowhere/bus",
};
const facts = {};

function cli(...args) {
  return execFileSync(binary, args, { cwd: dirs.config, env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

function prepare() {
  for (const dir of Object.values(dirs)) fs.mkdirSync(dir, { mode: 0o700 });
  fs.cpSync(path.join(here, "files"), dirs.config, { recursive: true });
  fs.cpSync(path.join(here, "workflows"), path.join(dirs.config, "workflows"), { recursive: true });
  fs.mkdirSync(path.join(dirs.config, "notes"));
  fs.writeFileSync(path.join(dirs.config, "notes", "a.txt"), "a note\n");
  fs.chmodSync(path.join(dirs.config, "secrets.env"), 0o600);
  fs.copyFileSync(path.join(here, "ledger"), path.join(dirs.bin, "ledger"));
}

// start starts serve --http and returns its URL and a function that stops it.
async function start() {
  const child = spawn(binary, ["serve", "--http", "127.0.0.1:0"], { cwd: dirs.config, env, stdio: ["ignore", "inherit", "pipe"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const url = await new Promise((resolve) => {
    readline.createInterface({ input: child.stderr }).on("line", (line) => {
      const found = line.match(/msg=listening.*?(http:\/\/[0-9.:]+)/);
      if (found) resolve(found[1]);
      else if (!line.includes("level=INFO")) console.error(line);
    });
  });
  return { url, stop: () => (child.kill("SIGTERM"), ended) };
}

async function request(url, method, route, body, as = facts.token, type = "application/json") {
  const answer = await fetch(url + route, {
    method, headers: { Authorization: `Bearer ${as}`, ...(body === undefined ? {} : { "Content-Type": type }) },
    body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  const json = (answer.headers.get("Content-Type") ?? "").includes("json");
  return { status: answer.status, json: json ? JSON.parse(text) : undefined, text: json ? undefined : text };
}

// converse is a client of serve on stdin and stdout.
async function converse(calls) {
  const child = spawn(binary, ["serve"], { cwd: dirs.config, env, stdio: ["pipe", "pipe", "ignore"] });
  const waiting = new Map();
  readline.createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    waiting.get(message.id)?.(message);
  });
  let id = 0;
  const send = (method, params) => new Promise((resolve) => {
    waiting.set(++id, resolve);
    child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
  });
  await send("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "compat", version: "1" } });
  child.stdin.write(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }) + "\n");
  for (const [name, args] of calls) {
    const { result } = await send("tools/call", { name, arguments: args });
    console.error(name, JSON.stringify(result.content[0].text).slice(0, 300));
    if (result.isError) throw new Error(name);
  }
  child.stdin.end();
  await new Promise((resolve) => child.on("exit", resolve));
}

const skill = "from servers.ledger import echo\n\ndef say_twice(word: str) -> str:\n    return ' '.join([echo(text=word)] * 2)\n";

async function makeData() {
  cli("tools", "--refresh");
  facts.token = cli("token", "create", "ci", "--scope", "mcp,read,execute,call,workflow,files,metrics,operate").trim();
  facts.reader = cli("token", "create", "reader", "--scope", "read", "--rate", "600/m").trim();
  await converse([
    ["search_tools", { query: "who is on duty" }],
    ["execute_code", { code: "from servers.ledger import contact, echo\n[contact(), echo(text='hello')]" }],
    ["save_skill", { name: "say-twice", description: "Says something twice.", code: skill }],
    ["save_skill", { name: "shout", language: "typescript", description: "Shouts.", scope: "shared", code: "export function shout(text: string): string { return text.toUpperCase() }" }],
    ["save_skill", { name: "whisper", language: "typescript", description: "Whispers.", scope: "shared", code: "export function whisper(text: string): string { return text.toLowerCase() }" }],
    ["search_tools", { query: "who is on duty" }],
  ]);
  cli("skills", "approve", "shout");
  const site = await start();
  const execute = (body) => request(site.url, "POST", "/execute", body).then(({ json }) => json);
  const keep = (name, { id, status, ...rest }, wanted) => {
    facts[name] = id;
    if (status !== wanted) throw new Error(`${name}: ${status} ${JSON.stringify(rest)}`);
  };
  keep("ok", await execute({ code: "open('/workspace/made.txt', 'w').write('made before')\nprint('printed')\n{'n': 1}", workspace: "reports" }), "ok");
  keep("session", await execute({ code: "from servers.ledger import contact\nx = 41\nprint(contact())", session: "desk" }), "ok");
  keep("failed", await execute({ code: "from servers.ledger import enter\nfirst = enter(text='good and once')\nsecond = enter(text='bad at first')\n[first, second]" }), "failed");
  keep("held", await execute({ code: "from servers.ledger import enter, post\nenter(text='before the post')\npost(text='to the outside')" }), "held");
  const run = async (name, workflow, wanted, body = {}) => keep(name, (await request(site.url, "POST", `/workflows/${workflow}/runs`, { wait: 20, ...body })).json, wanted);
  await run("greet", "greet", "ok", { inputs: { name: "Ada" }, key: "once" });
  await run("ask", "ask", "waiting");
  await run("fails", "fails", "failed");
  await run("runHeld", "held", "waiting");
  keep("pause", (await request(site.url, "POST", "/workflows/pause/runs", {})).json, "queued");
  while ((await request(site.url, "GET", `/runs/${facts.pause}`)).json.status !== "waiting") await new Promise((resolve) => setTimeout(resolve, 200));
  const asked = (await request(site.url, "GET", "/approvals", undefined, "a-token-in-the-settings")).json;
  facts.approval = asked.approvals.find((each) => each.execution === facts.held).id;
  facts.runApproval = asked.approvals.find((each) => each.execution === facts.runHeld).id;
  facts.definition = (await request(site.url, "GET", "/upstreams/held", undefined, "a-token-in-the-settings")).json.held.find((each) => each.id === "drafts.echo")?.digest;
  await site.stop();
  facts.head = cli("log", "head").trim();
  cli("backup", path.join(dirs.config, "backup.tar.gz"));
  facts.made = new Date().toISOString();
}

// calls are the recorded requests: those that change something come last.
function calls() {
  const operator = "a-token-in-the-settings";
  const reads = ["/openapi.json", "/openapi.json?profile=clients", "/health", "/readyz", "/tools", "/tools?upstream=ledger", "/tools/search?q=who+is+on+duty", "/tools/search?q=enter&detail=full&language=typescript", "/tools/info/ledger/enter",
    "/executions", "/executions?status=failed&limit=5", `/executions/${facts.ok}`, `/executions/${facts.failed}`, `/executions/${facts.held}`, `/executions/${facts.failed}/calls`, "/executions/live",
    "/upstreams", "/skills", "/skills/shout", "/skills/say-twice", "/workspaces", "/workspaces/reports/files", "/workspaces/reports/files/made.txt", "/savings", "/metrics", "/workflows",
    ...["greet", "ask", "clock", "pause"].map((name) => `/workflows/${name}`), "/runs", "/runs?status=waiting", ...["greet", "ask", "fails", "pause"].flatMap((name) => [`/runs/${facts[name]}`, `/runs/${facts[name]}/events`]),
    "/executions/e-none", "/runs/r-aaaaaaaaaaaa", "/tools/info/ledger/nothing", "/runs?status=strange", "/approvals"].map((route) => ["GET", route]);
  const forOperators = ["/approvals", `/approvals/${facts.approval}`, "/upstreams/held", "/audit", "/audit?kind=call&limit=2", "/skills", "/executions"].map((route) => ["GET", route, undefined, operator]);
  const changes = [
    ["GET", "/executions", undefined, "no-such-token"], ["GET", "/executions", undefined, facts.reader], ["POST", "/execute", { code: "1" }, facts.reader],
    ["POST", "/execute", { code: "import sys\nprint(open('/workspace/made.txt').read())\n[1]", workspace: "reports" }], ["POST", "/execute", { cod: "1" }], ["POST", "/execute", { code: "1 +" }],
    ["POST", "/execute", { code: "from servers.ledger import contact\nprint(contact())", session: "desk" }],
    ["POST", "/execute", { code: "import { shout } from 'skills/shout';\nshout('who')", language: "typescript" }],
    ["POST", "/execute", { code: "from servers.workflows import greet\ngreet(name='Bob')" }],
    ["POST", "/tools/call/ledger/echo", { arguments: { text: "hello" } }], ["POST", "/tools/call/ledger/enter", { arguments: { text: "bad call" } }], ["POST", "/tools/call/ledger/post", { arguments: { text: "from the API" } }],
    ["POST", "/tools/call/drafts/write", { arguments: { text: "held back" } }],
    ["POST", `/approvals/${facts.approval}`, { decision: "allow", scope: "once" }, operator], ["POST", "/execute", { code: "", resume: facts.held }], ["POST", "/execute", { code: "", resume: facts.failed }],
    ["PUT", "/workspaces/reports/files/new.txt", "new"], ["GET", "/workspaces/reports/files/new.txt"], ["DELETE", "/workspaces/reports/files/new.txt"],
    ["POST", "/workflows/greet/plan", { inputs: { name: "Cyd" } }], ["POST", "/workflows/greet/runs", { inputs: { name: "Ada" }, key: "once", wait: 20 }], ["POST", "/workflows/greet/runs", { inputs: { nam: "Ada" } }],
    ["POST", `/runs/${facts.ask}/answer`, { step: "ask", values: { word: "answered", size: "huge" } }], ["POST", `/runs/${facts.ask}/answer`, { step: "ask", values: { word: "answered", size: "m" } }],
    ["GET", `/runs/${facts.ask}?wait=20`], ["POST", `/runs/${facts.pause}/cancel`, {}], ["POST", `/runs/${facts.greet}/replay`, { step: "say" }], ["POST", `/runs/${facts.fails}/resume`, {}], ["GET", `/runs/${facts.fails}?wait=20`],
    ["POST", `/approvals/${facts.runApproval}`, { decision: "allow", scope: "once" }, operator], ["GET", `/runs/${facts.runHeld}?wait=20`],
    ["POST", `/upstreams/held/drafts.echo`, { digest: facts.definition }, operator], ["POST", `/executions/${facts.ok}/cancel`, {}],
  ];
  return [...reads, ...forOperators, ...changes].map(([method, route, body, as]) => ({ method, route, body, as: as ?? facts.token }));
}

// man returns the flags of every command.
function man() {
  cli("man", path.join(home, "man"));
  const pages = fs.readdirSync(path.join(home, "man"));
  return Object.fromEntries(pages.map((page) => {
    const text = fs.readFileSync(path.join(home, "man", page), "utf8").replaceAll("\\-", "-");
    return [page, [...new Set(text.match(/--[a-z][a-z-]*/g))].sort()];
  }));
}

// commands are the command lines that print JSON; nothing changes by them.
function commands() {
  return [["approvals", "--json"], ["approvals", "--all", "--json"], ["executions", "--json"], ["log", "--json", "--limit", "3"], ["log", "--kind", "execution.*", "--json", "--limit", "1"], ["log", "verify", "--json"], ["token", "list", "--json"],
    ["tools", "--json"], ["workflow", "runs", "--json"], ["workflow", "runs", "--status", "waiting", "--workflow", "ask", "--json"], ["workflow", "log", facts.greet, "--json", "--limit", "1"], ["workflow", "lint", "--json"],
    ["workflow", "run", "greet", "--input", "name=Eve", "--dry-run", "--json"]].map((args) => ({ args, json: JSON.parse(cli(...args).split(/^(?=\{)/m)[0]) }));
}

// outline is what must stay of an OpenAPI document, and names of a page of metrics.
function outline({ paths, components }) {
  const set = (list) => Object.fromEntries(list.map((name) => [name, true]));
  return {
    operations: Object.fromEntries(Object.entries(paths).flatMap(([route, methods]) =>
      Object.entries(methods).map(([method, { operationId, parameters }]) => [`${method} ${route} ${operationId ?? ""}`, set((parameters ?? []).map((each) => each.name))]))),
    schemas: Object.fromEntries(Object.entries(components.schemas).map(([name, { properties }]) => [name, Object.fromEntries(Object.keys(properties ?? {}).map((key) => [key, null]))])),
  };
}
const names = (metrics) => metrics.match(/^# TYPE \S+ \S+$/gm).map((line) => line.slice(7));

async function record() {
  const site = await start();
  const all = [];
  for (const each of calls()) {
    if (each.route === "/execute" && each.body?.resume === facts.failed) fs.writeFileSync(path.join(dirs.tmp, "repaired"), "");
    const answer = await request(site.url, each.method, each.route, each.body, each.as, typeof each.body === "string" ? "application/octet-stream" : undefined);
    console.error(each.method, each.route, answer.status, JSON.stringify(answer.json ?? answer.text).slice(0, 160));
    if (each.route.startsWith("/openapi.json")) answer.json = outline(answer.json);
    if (each.route === "/metrics") answer.text = names(answer.text);
    all.push({ ...each, ...answer });
  }
  await site.stop();
  return all;
}

function pack() {
  const folders = ["config", "data", "cache", "tmp"];
  for (const dir of ["data/sallyport/control", "cache/sallyport/snapshots"]) fs.rmSync(path.join(home, dir), { recursive: true, force: true });
  execFileSync("tar", ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-czf", path.join(here, "home.tar.gz"), "-C", home, ...folders], { env: { ...process.env, GZIP: "-9" } });
}

function write(name, value) {
  fs.writeFileSync(path.join(here, name), JSON.stringify(value).replaceAll(home, "HOME").replace(/^\[|(?<=\}),(?=\{"(method|args)")|\]$/g, "$&\n").trim() + "\n");
}

prepare();
await makeData();
pack();
write("commands.json", commands());
write("man.json", man());
write("api.json", await record());
fs.writeFileSync(path.join(here, "facts.json"), JSON.stringify(facts, null, 2) + "\n");
