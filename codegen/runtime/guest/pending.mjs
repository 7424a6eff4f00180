// Promises of calls. A program that takes one for its value, without await, gets an error; a promise that is never used
// is listed in unawaited.

const unused = new WeakMap(); // promise -> its record in unawaited
const names = new WeakMap(); // promise -> the name of the function

// The calls whose promises nothing has waited for, as { name }.
export const unawaited = new Set();

const METHODS = new Set(["then", "catch", "finally", "constructor"]);
const VALUES = new Set([Symbol.toPrimitive, Symbol.iterator, Symbol.asyncIterator]);
const CONVERSIONS = new Set([Symbol.toPrimitive, "toString", "valueOf", "toJSON"]);

const isAllowed = (key) => METHODS.has(key) || (typeof key === "symbol" && !VALUES.has(key));

// The prototype of the promises: what await, then and Promise.* need is there, every other member is a mistake.
const prototype = new Proxy(Object.create(Promise.prototype), {
  get(target, key, promise) {
    if (!isAllowed(key)) throw misuse(promise, key);
    if (METHODS.has(key)) markUsed(promise);
    return Reflect.get(Promise.prototype, key, promise);
  },
  set(target, key, value, promise) {
    if (typeof key === "symbol") return Reflect.defineProperty(promise, key, { value, writable: true, configurable: true }); // node's async_hooks
    throw misuse(promise, key);
  },
  has(target, key) {
    if (typeof key === "string" && !METHODS.has(key)) throw misuse(undefined, key);
    return Reflect.has(Promise.prototype, key); // inspect looks for an iterator
  },
});

// An own member makes a spread and Object.entries a mistake, too.
const spread = {
  enumerable: true,
  configurable: true,
  get() {
    throw misuse(this);
  },
};

function markUsed(promise) {
  unawaited.delete(unused.get(promise));
}

function misuse(promise, key = Symbol.iterator) {
  markUsed(promise);
  const call = `${names.get(promise) ?? "f"}(...)`;
  const member = typeof key === "string" && !CONVERSIONS.has(key) ? `.${key}` : "";
  const error = new TypeError(`${call}${member}: the call was not awaited`);
  error.hint = member ? `write (await ${call})${member}` : `write await ${call}`;
  return error;
}

// Returns the promise of a call of a function, guarded. One that is called for its effect need not be awaited.
export function guarded(promise, name, effect = false) {
  const record = { name };
  if (!effect) unawaited.add(record);
  unused.set(promise, record);
  names.set(promise, name);
  return Object.defineProperty(Object.setPrototypeOf(promise, prototype), "await", spread);
}
