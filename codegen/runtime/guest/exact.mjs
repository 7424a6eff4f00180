// Parses JSON without losing digits: an integer that a number cannot hold becomes a bigint.

import { randomUUID } from "node:crypto";

// An integer of 16 or more digits outside of a string, as far as a cheap search can tell.
const LONG = /[[:,]\s*-?\d{16}/;
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
const INTEGER = /^-?\d{16,}$/;

export function parse(text) {
  if (!LONG.test(text)) return JSON.parse(text);
  const mark = randomUUID(); // text of an upstream cannot contain it
  const marked = text.replace(TOKEN, (token) => (INTEGER.test(token) && !Number.isSafeInteger(Number(token)) ? `"${mark}${token}"` : token));
  return JSON.parse(marked, (key, value) => (typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value));
}

// Programs print results as JSON, which has no bigint: its digits become a string.
Object.defineProperty(BigInt.prototype, "toJSON", {
  configurable: true,
  writable: true,
  value() {
    return String(this);
  },
});
