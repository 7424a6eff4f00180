// Reseeds the random generators of a node process that was copied, which were seeded before the copy.

import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";

let device;

// Whether OpenSSL takes each random byte from the processor, as openssl.cnf configures, and so has no state to copy.
const STATELESS = process.arch === "x64" && process.execArgv.some((flag) => flag.startsWith("--openssl-config=")) && /\brdrand\b/.test(readFileSync("/proc/cpuinfo", "latin1"));

// Fills a view with random bytes from the kernel.
function fill(view) {
  device ??= openSync("/dev/urandom", "r");
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  for (let at = 0; at < bytes.length; ) at += readSync(device, bytes, at, bytes.length - at, null);
  return view;
}

export function refresh() {
  shuffle();
  if (!STATELESS) replace();
  if (device !== undefined) closeSync(device);
  device = undefined;
}

// Replaces Math.random, whose state cannot be reset, by sfc32 with 53 bits.
function shuffle() {
  let [a, b, c, d] = fill(new Int32Array(4));
  const next = () => {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + t) | 0;
    return t >>> 0;
  };
  const random = (() => ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992).bind(); // prints like a native function
  Object.defineProperty(random, "name", { value: "random", configurable: true });
  Object.defineProperty(Math, "random", { value: random, writable: true, configurable: true });
}

// Replaces the functions that get random bytes from OpenSSL. It does not cover keys and other internal uses: docs/explanation/limits.md.
function replace() {
  const { randomBytes, randomFill, randomFillSync, randomInt } = crypto;
  const part = (view, offset = 0, size = (view.length ?? view.byteLength) - offset) => {
    const width = view.BYTES_PER_ELEMENT ?? 1;
    fill(new Uint8Array(view.buffer ?? view, (view.byteOffset ?? 0) + offset * width, size * width));
    return view;
  };
  const whole = (low, high) => {
    const range = high - low;
    const most = 2 ** 48 - (2 ** 48 % range);
    for (;;) {
      const number = Buffer.from(fill(new Uint8Array(6))).readUIntBE(0, 6);
      if (number < most) return low + (number % range);
    }
  };
  // The original functions validate the arguments.
  crypto.randomBytes = (size, done) => (done ? randomBytes(size, (error, bytes) => done(error, bytes && fill(bytes))) : fill(randomBytes(size)));
  crypto.randomFillSync = (view, ...range) => part(randomFillSync(view, ...range), ...range);
  crypto.randomFill = (view, ...rest) => randomFill(view, ...rest.slice(0, -1), (error) => rest.at(-1)(error, error ? undefined : part(view, ...rest.slice(0, -1))));
  crypto.randomInt = (...given) => {
    const done = typeof given.at(-1) === "function" ? given.pop() : undefined;
    randomInt(...given);
    const number = given.length > 1 ? whole(given[0], given[1]) : whole(0, given[0]);
    return done ? process.nextTick(done, undefined, number) : number;
  };
  crypto.randomUUID = () => {
    const bytes = fill(Buffer.alloc(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  };
  const web = Object.getPrototypeOf(crypto.webcrypto);
  const { getRandomValues } = web;
  web.getRandomValues = function (view) {
    return fill(getRandomValues.call(this, view));
  };
  web.randomUUID = () => crypto.randomUUID();
  syncBuiltinESMExports();
}
