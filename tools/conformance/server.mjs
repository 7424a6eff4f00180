// server.mjs runs the official server suites against `sallyport serve --http`:
// direct mode in front of the SDK's own everything-server and a server with tasks, where
// all that counts must pass, and the two tools, for which tools.txt says what they cannot
// pass and why. Usage: node server.mjs SALLYPORT EVERYTHING_SERVER TASKS_SERVER. It leaves
// no process behind.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [sallyport, everything, tasks] = process.argv.slice(2);
const here = import.meta.dirname;
const suite = join(here, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const work = mkdtempSync(join(tmpdir(), "conformance-"));
const children = new Set();

function start(command, args, options) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  child.said = "";
  child.over = new Promise((resolve) => child.on("close", (status) => { children.delete(child); resolve(status); }));
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => { child.said += data; });
  children.add(child);
  return child;
}

async function stop(child) {
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await child.over;
  clearTimeout(late);
}

// until waits for something that a child brings about.
async function until(child, what, ready) {
  for (let tries = 0; tries < 300; tries++) {
    const found = await ready();
    if (found) return found;
    if (child.exitCode !== null) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${what} does not come about:\n${child.said}`);
}

const freePort = () => new Promise((resolve) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});

// upstream starts a server whose arguments have the address, and returns its line in the settings.
async function upstream(name, command, args) {
  const address = `127.0.0.1:${await freePort()}`;
  const child = start(command, args(address));
  await until(child, name, () => fetch(`http://${address}/`).then(() => true, () => false));
  return { child, line: `  ${name}: {url: "http://${address}/"}\n` };
}

// upstreams starts the servers for a revision: tasks are an extension of those without sessions.
async function upstreams(stateless) {
  const all = [await upstream("everything", everything, (address) => [`-http=${address}`, `-stateless=${stateless}`])];
  if (stateless) all.push(await upstream("tasks", tasks, (address) => [address]));
  return { servers: all.map(({ child }) => child), settings: "upstreams:\n" + all.map(({ line }) => line).join("") };
}

async function gateway(settings, args) {
  const config = join(work, "upstreams.yaml");
  writeFileSync(config, settings);
  const env = { ...process.env, XDG_CACHE_HOME: work, XDG_STATE_HOME: work, XDG_DATA_HOME: mkdtempSync(join(work, "data-")), XDG_RUNTIME_DIR: work, XDG_CONFIG_HOME: work };
  const child = start(sallyport, ["serve", "--config", config, "--http", "127.0.0.1:0", ...args], { env });
  const url = await until(child, "sallyport's address", () => child.said.match(/address=(\S+)/)?.[1]);
  return { child, url };
}

// scenarios runs a suite and returns those that failed, scored or not.
async function scenarios(url, revision) {
  const child = start(process.execPath, [suite, "server", "--url", url, "--requirements", revision], { cwd: work });
  const status = await child.over;
  const [, scored = "", rest = ""] = child.said.match(/=== SUMMARY ===([^]*?)(Not scored[^]*)?$/) ?? [];
  const names = (text, mark) => [...text.matchAll(new RegExp(`${mark} ([\\w./-]+)`, "g"))].map((m) => m[1]);
  const unscored = new Set([...names(rest, "✓"), ...names(rest, "✗")]);
  const all = [...names(scored, "✓"), ...names(scored, "✗")];
  if (all.length < 20) throw new Error(`the suite did not run:\n${child.said}`);
  return { status, all, failed: names(scored, "✗").map((name) => ({ name, scored: !unscored.has(name) })), said: child.said };
}

// baseline reads lines of REVISION SCENARIO REASON, each with the exact name of one scenario; * stands for every revision.
function baseline(file, revision) {
  const lines = readFileSync(join(here, file), "utf8").split("\n").filter((line) => line.trim() && !line.startsWith("#"));
  return lines.map((line) => line.trim().split(/\s+/)).filter(([when]) => when === "*" || when === revision).map(([, scenario, ...reason]) => {
    if (scenario.includes("*")) throw new Error(`${file}: ${scenario} is no name of a scenario`);
    if (reason.length < 3) throw new Error(`${file}: ${scenario} has no reason`);
    return { scenario, used: false };
  });
}

// check runs one suite and says what is not as it should be.
async function check(title, revision, file, strict, settings, args) {
  const { child, url } = await gateway(settings, args);
  const { all, failed, said } = await scenarios(url, revision);
  const known = baseline(file, revision);
  const faults = [];
  for (const { name, scored } of failed) {
    const line = known.find((k) => k.scenario === name);
    if (line) line.used = true;
    if (!line) faults.push(`${name} fails`);
    else if (scored && strict) faults.push(`${name} fails, and counts`);
  }
  for (const { scenario, used } of known) if (!used) faults.push(`${scenario} of ${file} does not fail: remove the line`);
  await stop(child);
  if (child.exitCode !== 0) faults.push(`sallyport ended with ${child.exitCode}:\n${child.said.slice(-2000)}`);
  console.log(`${faults.length ? "FAIL" : "ok  "} ${revision} ${title}: ${all.length - failed.length} of ${all.length} scenarios pass, ${failed.length} are explained in ${file}`);
  for (const fault of faults) console.log(`     ${fault}`);
  if (faults.length) console.log(said);
  return faults.length === 0;
}

let good = true;
try {
  for (const [revision, stateless] of [["2025-11-25", false], ["2026-07-28", true]]) {
    const { servers, settings } = await upstreams(stateless);
    good = await check("direct mode", revision, "direct.txt", true, settings, ["--mode", "direct", "--prefix=false"]) && good;
    for (const child of servers) await stop(child);
    good = await check("two tools", revision, "tools.txt", false, "upstreams: {}\n", []) && good;
  }
} catch (error) {
  console.error(error.message);
  good = false;
} finally {
  for (const child of children) child.kill("SIGKILL");
  await Promise.all([...children].map((child) => child.over));
  rmSync(work, { recursive: true, force: true });
}
process.exit(good ? 0 : 1);
