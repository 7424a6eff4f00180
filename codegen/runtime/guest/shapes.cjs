// Implements shape_of: the type of a value in the syntax of signatures, by the rules of internal/jsontype.

const DEPTH = 12;
const LEVELS = 4;
const LOOKS = 50_000;
const LONGEST = 4000;
const SAMPLED = 128; // of a long list, the first SAMPLED items and every EVERY-th after them
const EVERY = 64;
const FIELDS = 128;
const LOOSE = 16;
const ALIKE = 24;
const SAME = 3;
const ORDER = ["boolean", "number", "string", "array", "object", "Blob"];

exports.shape_of = (value, Blob) => {
  const shape = new Reader(Blob).value(value, 0);
  for (let level = LEVELS; level >= 0; level--) {
    const told = text(shape, level, 0);
    if (told.length <= LONGEST) return told;
  }
  return text(shape, 0, 0).slice(0, LONGEST) + "...";
};

// A shape: the observed kinds, elem of lists, fields (name to { optional, shape }) or values of objects.
function shapeOf(...kinds) {
  return { kinds: new Set(kinds), any: false, elem: undefined, fields: new Map(), values: undefined, key: "string" };
}

function anything() {
  return { ...shapeOf(), any: true };
}

class Reader {
  constructor(Blob) {
    this.Blob = Blob;
    this.looks = LOOKS;
  }

  value(value, depth) {
    this.looks--;
    if (value === null) return shapeOf("null");
    if (typeof value !== "object") return shapeOf(typeof value);
    if (typeof value.then === "function") return shapeOf("Promise (await it first)");
    if (value instanceof this.Blob) return shapeOf("Blob");
    const isList = Array.isArray(value) || value instanceof Set;
    if (!isList && !(value instanceof Map) && !isRecord(value)) return shapeOf(value.constructor.name);
    if (depth === DEPTH || this.looks < 0) return anything();
    return isList ? this.list(value, depth) : this.object(value, depth);
  }

  list(values, depth) {
    const shape = shapeOf("array");
    let at = 0;
    for (const value of values) {
      if (at < SAMPLED || (at % EVERY === 0 && this.looks > 0)) shape.elem = merge(shape.elem, this.value(value, depth + 1));
      at++;
    }
    return shape;
  }

  object(value, depth) {
    const shape = shapeOf("object");
    let isMap = false;
    let at = -1;
    for (const [key, inner] of value instanceof Map ? value : Object.entries(value)) {
      at++;
      if (inner === undefined || (isMap && at >= SAMPLED && (at % EVERY !== 0 || this.looks <= 0))) continue;
      const found = this.value(inner, depth + 1);
      if (isMap) {
        shape.values = merge(shape.values, found);
        continue;
      }
      shape.fields.set(key, { optional: false, shape: found });
      if (!isName(key) || shape.fields.size > FIELDS) {
        isMap = true;
        becomeMap(shape);
      }
    }
    if (!isMap && (alike(shape.fields) || sameObjects(shape.fields))) becomeMap(shape);
    return shape;
  }
}

// Reports whether an object is described by its members; a Date or an Error is described by its name.
function isRecord(value) {
  const kind = Object.prototype.toString.call(value);
  return kind === "[object Object]" && !(value instanceof Error);
}

function becomeMap(shape) {
  for (const { shape: inner } of shape.fields.values()) shape.values = merge(shape.values, inner);
  shape.fields = new Map();
}

function merge(a, b) {
  if (!a || !b) return a ?? b;
  if (a.any || b.any) return anything();
  const shape = shapeOf(...a.kinds, ...b.kinds);
  shape.elem = merge(a.elem, b.elem);
  const objects = [a, b].filter((one) => one.kinds.has("object"));
  if (objects.length === 1) [shape.fields, shape.values] = [objects[0].fields, objects[0].values];
  if (objects.length === 2) mergeObjects(shape, a, b);
  return shape;
}

function mergeObjects(shape, a, b) {
  if (a.values || b.values) {
    for (const one of [a, b]) if (!one.values) becomeMap(one);
    shape.values = merge(a.values, b.values);
    return;
  }
  for (const name of new Set([...a.fields.keys(), ...b.fields.keys()])) {
    const [mine, other] = [a.fields.get(name), b.fields.get(name)];
    const optional = !mine || !other || mine.optional || other.optional;
    shape.fields.set(name, { optional, shape: merge(mine?.shape, other?.shape) });
  }
  const loose = shape.fields.size > LOOSE && [...shape.fields.values()].every((field) => field.optional);
  if (shape.fields.size > FIELDS || loose) becomeMap(shape);
}

// Reports whether there are many members, all of one kind. Integers are a kind of their own, as in observed shapes.
function alike(fields) {
  if (fields.size <= ALIKE) return false;
  const kinds = new Set();
  for (const { shape } of fields.values()) {
    if (shape.any || shape.kinds.size > 2) return false;
    const own = [...shape.kinds].filter((kind) => kind !== "null");
    if (own.length > 1) return false;
    own.forEach((kind) => kinds.add(kind));
  }
  return kinds.size <= 1;
}

// Reports whether all members are objects with the same members.
function sameObjects(fields) {
  const shapes = [...fields.values()].map((field) => field.shape);
  if (shapes.length < SAME || shapes[0].fields.size < 2) return false;
  const names = [...shapes[0].fields.keys()];
  return shapes.every((one) => one.kinds.size === 1 && one.kinds.has("object") && one.fields.size === names.length && names.every((name) => one.fields.has(name)));
}

// Reports whether a key is a plausible member name, unlike ids, numbers, dates, addresses and sentences.
function isName(key) {
  if (typeof key !== "string" || key === "" || Buffer.byteLength(key) > 64 || /^[0-9-]/.test(key)) return false;
  const rest = key.replace(/^@/, "").replace(/^odata\./, "");
  if (!/^[\p{L}\p{M}0-9_$-]*$/u.test(rest) || /[0-9]{4}/.test(rest)) return false;
  const changes = rest.match(/(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])/g)?.length ?? 0;
  return changes < 4 && !isHex(rest) && !isJumble(rest);
}

// Reports whether text contains a random-looking word, such as a token.
function isJumble(text) {
  const odd = /[A-Z]{2,}|[0-9]+|(?<=[A-Z0-9])[a-z](?=[A-Z])/g;
  return (text.match(/[A-Za-z0-9]{14,}/g) ?? []).some((word) => (word.match(odd)?.length ?? 0) >= 3);
}

function isHex(text) {
  return text.length >= 7 && /^[0-9a-fA-F]+$/.test(text) && (text.length >= 16 || /[0-9]/.test(text));
}

// Returns the type as text; objects deeper than level are {...}.
function text(shape, level, depth) {
  return kinds(shape).map((kind) => kindText(shape, kind, level, depth)).join(" | ");
}

function kinds(shape) {
  if (!shape || shape.any || shape.kinds.size === 0) return ["any"];
  const others = [...shape.kinds].filter((kind) => !ORDER.includes(kind) && kind !== "null").sort();
  return [...ORDER.filter((kind) => shape.kinds.has(kind)), ...others, ...(shape.kinds.has("null") ? ["null"] : [])];
}

function kindText(shape, kind, level, depth) {
  if (kind === "array") return kinds(shape.elem).length > 1 ? `(${text(shape.elem, level, depth)})[]` : text(shape.elem, level, depth) + "[]";
  if (kind !== "object") return kind;
  if (shape.fields.size === 0) return `Record<string, ${text(shape.values, level, depth)}>`;
  if (depth >= level) return "{...}";
  const names = [...shape.fields.keys()].sort();
  const members = names.map((name) => `${member(name)}${shape.fields.get(name).optional ? "?" : ""}: ${text(shape.fields.get(name).shape, level, depth + 1)}`);
  return `{${members.join(", ")}}`;
}

function member(name) {
  return /^[A-Za-z_$][\w$]*$/.test(name) && !name.startsWith("__") && name !== "constructor" && !name.includes("$") ? name : JSON.stringify(name);
}
