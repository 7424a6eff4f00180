#!/usr/bin/env node
// Starts the program of the package for this platform, which npm installed as an optional dependency.
"use strict";
const { spawn } = require("node:child_process");

const name = `@sallyport/${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/sallyport${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`sallyport: npm did not install ${name}. Supported: TARGETS. Install without --omit=optional.`);
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A signal to this process alone would leave the program without its parent.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`sallyport: start ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.removeAllListeners(name);
  process.kill(process.pid, signal);
});
