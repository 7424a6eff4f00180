// Checks the arguments of a call before they leave the sandbox, by the types in its wrapper's spec (codegen/spec.go).
//
// Rejects only what the upstream's schema rejects too; the gateway checks patterns, ranges and the like.
// sallyport/check.py is the same for Python, line by line: an invalid call gets the same messages in both.

const FAULTS = 3; // limit of reported faults; below, limits of checked values and nesting; values beyond them pass
const STEPS = 20_000;
const DEPTH = 60;
const TEXT = 300;
const VALUE = 40;
const CHOICES = 10;

const specs = new Map();

function parsed(text) {
  let spec = specs.get(text);
  if (!spec) specs.set(text, (spec = JSON.parse(text)));
  return spec;
}

// Checks args, the decoded arguments. Returns { wrong, hint }, the faults and the tool's signature, or { drop, forms },
// the names of optional, non-nullable arguments that are null, and the parameters that other forms of their names mean.
export function refuse(args, text) {
  const spec = parsed(text);
  const types = spec.args;
  const drop = [];
  if (types === undefined) return { drop, forms: {} };
  const check = new Check(spec.defs ?? []);
  const forms = check.rename(types, args);
  for (const [name, [t, needed]] of check.members(types)) {
    if (needed || !has(args, name) || args[name] !== null || check.fits(t, null)) continue;
    drop.push(name);
    delete args[name];
  }
  if (check.fits(types, args)) return { drop, forms };
  check.steps = STEPS;
  check.explain(types, args, "");
  const found = check.faults.slice(0, FAULTS).map((fault) => line(fault, TEXT));
  const more = check.faults.length > FAULTS ? "; and more" : "";
  return { wrong: `wrong arguments: ${found.join("; ") || "they do not fit"}${more}`, hint: spec.sig };
}

// Returns args with the parameters' own names.
export function rename(args, text) {
  const { args: types, defs } = parsed(text);
  const own = { ...args };
  if (types !== undefined) new Check(defs ?? []).rename(types, own);
  return own;
}

// Returns the correct form of a call with positional arguments, as in Python.
export function rewrite(tool, value, text) {
  const spec = parsed(text);
  const check = new Check(spec.defs ?? []);
  const members = spec.args ? [...check.members(spec.args)] : [];
  const named = members.filter(([, [, needed]]) => needed);
  if (named.length === 0) named.push(...members.slice(0, 1));
  const parts = named.slice(0, CHOICES).map(([name, [t]], i) => {
    const fit = i === 0 && check.fits(t, value) && line(JSON.stringify(value) ?? "...", VALUE);
    return `${key(name)}: ${fit || "..."}`;
  });
  return `write: await ${tool.split(".")[1]}({ ${parts.join(", ") || "name: value"} }), as ${spec.sig}`;
}

class Check {
  constructor(defs) {
    Object.assign(this, { defs, faults: [], steps: STEPS });
  }

  resolve(t) {
    for (let i = 0; i < DEPTH; i++) {
      if (typeof t !== "number") return t;
      t = this.defs[t];
    }
    return "*";
  }

  // Returns the members of an object type: their types, and whether they are required.
  members(t) {
    if (t.members) return t.members;
    t.members = new Map();
    for (const [name, type] of Object.entries(t.o)) {
      const last = name.at(-1);
      t.members.set(last === "?" || last === "!" ? name.slice(0, -1) : name, [type, last !== "?"]);
    }
    return t.members;
  }

  // Gives arguments the parameters' own names in place of other forms of them, perPage for per_page, except where that
  // could mean something else. Returns the forms.
  rename(t, args) {
    const members = this.members(t);
    const forms = {};
    for (const name of t.x === undefined ? Object.keys(args) : []) {
      const own = members.has(name) ? [] : [...members.keys()].filter((known) => same(known, name));
      if (own.length !== 1 || has(args, own[0])) continue;
      forms[name] = own[0];
      args[own[0]] = args[name];
      delete args[name];
    }
    return forms;
  }

  fits(t, v, depth = 0) {
    if (--this.steps < 0 || depth > DEPTH) return true;
    t = this.resolve(t);
    if (typeof t === "string") return t === "*" || (KINDS[t] === kind(v) && (t !== "i" || Number.isInteger(v) || !Number.isFinite(v)));
    if (t.o) return kind(v) === "o" && this.fitsMembers(t, v, depth + 1);
    if (t.e) return among(t.e, v);
    if (t.u) return t.u.some((arm) => this.fits(arm, v, depth + 1));
    if (t.m !== undefined) return kind(v) === "o" && Object.values(v).every((item) => this.fits(t.m, item, depth + 1));
    return Array.isArray(v) && v.every((item, i) => this.fits(this.element(t, i), item, depth + 1));
  }

  fitsMembers(t, v, depth) {
    const members = this.members(t);
    for (const [name, [type, needed]] of members) {
      if (has(v, name)) {
        if (!this.fits(type, v[name], depth)) return false;
      } else if (needed) return false;
    }
    if (t.x === "*") return true;
    return Object.keys(v).every((name) => members.has(name) || (t.x !== undefined && this.fits(t.x, v[name], depth)));
  }

  // Returns the type of a list element.
  element(t, i) {
    return t.t?.[i] ?? t.l ?? "*";
  }

  // Collects the faults of the invalid value v.
  explain(t, v, path, name = "") {
    if (--this.steps < 0 || this.faults.length > FAULTS || path.split(/[.[]/).length > DEPTH) return;
    t = this.resolve(t);
    if (t.u && this.explainUnion(t, v, path, name)) return;
    if (t.o && kind(v) === "o") return this.explainMembers(t, v, path);
    if (t.m !== undefined && kind(v) === "o") return Object.keys(v).forEach((key) => this.explainPart(t.m, v[key], path, key));
    if ((t.l !== undefined || t.t) && Array.isArray(v)) return v.forEach((item, i) => this.explainPart(this.element(t, i), item, path, i));
    this.fault(path, `expected ${this.name(t)}, got ${got(v)}${this.advice(t, v, name)}`);
  }

  explainPart(t, v, path, key) {
    if (!this.fits(t, v)) this.explain(t, v, step(path, key), typeof key === "string" ? key : "");
  }

  explainMembers(t, v, path) {
    const members = this.members(t);
    const meant = new Set();
    const names = [...members.keys()];
    const unknown = Object.keys(v).filter((name) => !members.has(name));
    const absent = names.filter((name) => members.get(name)[1] && !has(v, name));
    for (const name of t.x === undefined ? unknown.slice(0, FAULTS + 1) : []) {
      const near = nearest(name, names.filter((known) => !has(v, known))) || nearest(name, names);
      meant.add(near);
      const choice = near ? `: did you mean ${key(near)}?` : path && names.length ? `, it has ${names.slice(0, CHOICES).map(key).join(", ")}` : "";
      this.fault(path, `unknown ${path ? "member" : "parameter"} ${quote(name)}${choice}`);
    }
    const missing = absent.filter((name) => !meant.has(name));
    if (missing.length) {
      const wrote = t.x === undefined ? "" : unknown.slice(0, 5).map(key).join(", ");
      const said = missing.slice(0, CHOICES).map((name) => `${key(name)}: ${this.name(members.get(name)[0], 1)}`);
      this.fault(path, `missing ${said.join(", ")}${wrote ? ` (you wrote ${wrote})` : ""}`);
    }
    for (const [name, item] of Object.entries(v)) {
      if (members.has(name)) this.explainPart(members.get(name)[0], item, path, name);
      else if (t.x !== undefined) this.explainPart(t.x, item, path, name);
    }
  }

  // Explains the faults of the intended arm. Returns false if no arm accepts the kind of v.
  explainUnion(t, v, path, name) {
    let arms = this.arms(t).filter((arm) => this.kinds(arm).includes(kind(v)));
    if (kind(v) === "o" && arms.length > 1) {
      const [tag, values] = this.tag(arms);
      if (tag && !has(v, tag)) {
        this.fault(path, `missing ${key(tag)}: ${this.name({ e: values })}`);
        return true;
      }
      if (tag && !among(values, v[tag])) {
        this.explain({ e: values }, v[tag], step(path, tag));
        return true;
      }
      if (tag) arms = arms.filter((arm) => among(this.literals(this.members(arm).get(tag)[0]), v[tag]));
    }
    let best;
    for (const arm of arms) {
      const saved = this.faults;
      this.faults = [];
      this.explain(arm, v, path, name);
      if (!best || this.faults.length < best.length) best = this.faults;
      this.faults = saved;
    }
    this.faults.push(...(best ?? []));
    return Boolean(best?.length);
  }

  // Returns the discriminating member of object types, and its possible values.
  tag(arms) {
    if (!arms.every((arm) => arm.o)) return ["", []];
    for (const name of this.members(arms[0]).keys()) {
      const found = arms.map((arm) => this.members(arm).get(name) ?? ["*", false]);
      const lists = found.filter(([, needed]) => needed).map(([t]) => this.literals(t));
      if (lists.length === arms.length && lists.every((list) => list.length)) return [name, lists.flat()];
    }
    return ["", []];
  }

  literals(t) {
    return this.resolve(t).e ?? [];
  }

  // Returns the kinds of values that a type accepts.
  kinds(t) {
    if (typeof t === "string") return KINDS[t] ?? "snbzlo";
    if (t.e) return t.e.map(kind).join("");
    return t.o || t.m !== undefined ? "o" : "l";
  }

  fault(path, text) {
    this.faults.push(path ? `${path}: ${text}` : text);
  }

  // Returns the correction of a value if it is obvious.
  advice(t, v, name) {
    if (typeof v === "string") {
      const near = nearest(v, this.arms(t).flatMap((arm) => this.literals(arm)).filter((value) => typeof value === "string"));
      // Codes of two or three letters are too short to suggest others.
      if (near && (v.length > 3 || same(near, v))) return `: did you mean ${quote(near)}?`;
      const value = parse(v);
      if (value !== null && this.fits(t, value)) return typeof value === "object" ? `: pass the ${NAMES[kind(value)]} itself, not its JSON` : `: write ${show(value)}`;
    }
    if (kind(v) === "n" && this.fits(t, show(v))) return `: write ${quote(show(v))}`;
    if (!this.isTuple(t) && this.fits(t, [v])) return v === null || typeof v !== "object" ? `: write [${show(v)}]` : ": put it into an array";
    if (Array.isArray(v) && v.length === 1 && this.fits(t, v[0])) return ": take it out of the array";
    if (kind(v) === "o" && has(v, name) && this.fits(t, v[name])) return `: pass the ${key(name)} in it`;
    return "";
  }

  // Returns the arms of a union, including nested and recursive unions; for other types the type itself.
  arms(t) {
    const found = [];
    const left = [t];
    const known = new Set();
    for (let arm of left) {
      arm = this.resolve(arm);
      if (!arm.u) found.push(arm);
      else if (!known.has(arm)) {
        known.add(arm);
        left.push(...arm.u);
      }
    }
    return found;
  }

  isTuple(t) {
    return this.arms(t).some((arm) => arm.t);
  }

  // Formats a type as in a signature.
  name(t, level = 0) {
    return line(this.write(this.resolve(t), level), 220);
  }

  write(t, level) {
    if (typeof t === "string") return TYPES[t];
    if (t.e) return choice(t.e.map(show));
    if (t.u) return this.arms(t).slice(0, CHOICES).map((arm) => this.write(arm, level)).join(" | ");
    if (level > 2) return "...";
    if (t.t) return `[${t.t.slice(0, CHOICES).map((arm) => this.write(this.resolve(arm), level + 1)).join(", ")}]`;
    if (t.l !== undefined) {
      const elem = this.resolve(t.l);
      const text = this.write(elem, level + 1);
      return elem.u || elem.e?.length > 1 ? `(${text})[]` : `${text}[]`;
    }
    if (t.m !== undefined) return `Record<string, ${this.write(this.resolve(t.m), level + 1)}>`;
    const members = [...this.members(t)].map(([name, [type, needed]]) => `${key(name)}${needed ? "" : "?"}: ${this.write(this.resolve(type), level + 1)}`);
    return `{${[...members.slice(0, CHOICES), ...(members.length > CHOICES ? ["..."] : [])].join(", ")}}`;
  }
}

// The parts that differ from check.py: names and literals of the language.
const KINDS = { s: "s", i: "n", n: "n", b: "b", z: "z" };
const NAMES = { s: "string", n: "number", b: "boolean", z: "null", l: "array", o: "object" };
const TYPES = { s: "string", i: "integer", n: "number", b: "boolean", z: "null", "*": "any" };

function has(v, name) {
  return Object.hasOwn(v, name);
}

function kind(v) {
  if (v === null) return "z";
  if (Array.isArray(v)) return "l";
  return { string: "s", number: "n", boolean: "b", object: "o" }[typeof v];
}

function among(values, v) {
  return values.includes(v);
}

function parse(text) {
  try {
    const value = text.length < 100_000 ? JSON.parse(text) : null;
    return typeof value === "number" && !Number.isFinite(value) ? null : value; // NaN and infinity cannot be sent
  } catch {
    return null;
  }
}

// Describes an invalid value.
function got(v) {
  if (Array.isArray(v)) return v.length ? `array of ${v.length}` : "empty array";
  if (kind(v) === "o") {
    const names = Object.keys(v);
    return `object {${names.slice(0, 5).map(key).join(", ")}${names.length > 5 ? ", ..." : ""}}`;
  }
  return typeof v === "string" || typeof v === "number" ? `${typeof v} ${show(v)}` : show(v);
}

function show(v) {
  return typeof v === "string" ? quote(v) : line(String(v), VALUE);
}

function quote(text) {
  const head = [...text.slice(0, 2 * VALUE + 2)];
  return clean(JSON.stringify(head.length <= VALUE ? text : head.slice(0, VALUE).join("") + "..."));
}

function clean(text) {
  return text.replace(/[\p{C}\p{Z}]/gu, (c) => (c === " " ? c : `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`));
}

function choice(values) {
  const shown = [];
  let size = 0;
  for (const value of values) {
    size += value.length + 1;
    if (size > 190 && shown.length) return `${shown.join("|")}|${values.length - shown.length} more`;
    shown.push(value);
  }
  return shown.join("|");
}

function key(name) {
  return /^[A-Za-z_]\w{0,63}$/.test(name) ? name : quote(name);
}

function step(path, part) {
  if (typeof part === "number") return `${path}[${part}]`;
  const shown = key(part);
  if (shown !== part) return path ? `${path}[${shown}]` : shown;
  return path ? `${path}.${part}` : part;
}

function line(text, limit) {
  return text.length <= limit ? text : text.slice(0, limit - 3) + "...";
}

// Returns the probably intended name, "" if none is similar. Same algorithm as internal/suggest in Go.
function nearest(word, names) {
  let best = "";
  let cost = 1 << 30;
  const folded = fold(word);
  for (const name of folded.length ? names : []) {
    const other = fold(name);
    const [short, long] = folded.length < other.length ? [folded, other] : [other, folded];
    let now = 1 << 30;
    if (same(word, name)) now = 0;
    else if (short.length >= 4 && 2 * short.length >= long.length && long.join("").includes(short.join(""))) now = 1;
    else if (long.length - short.length <= Math.max(1, Math.floor(folded.length / 3))) now = distance(folded, other);
    if (now < cost || (now === cost && name < best)) [best, cost] = [name, now];
  }
  return cost <= Math.max(1, Math.floor(folded.length / 3)) ? best : "";
}

function fold(text) {
  return [...text.toLowerCase().slice(0, 128)].slice(0, 64).filter((c) => !"-_. ".includes(c));
}

function same(a, b) {
  const folded = fold(a).join("");
  return folded !== "" && folded === fold(b).join("");
}

function distance(a, b) {
  let before = new Array(b.length + 1).fill(0);
  let last = before.map((_, j) => j);
  let row = [...before];
  for (let i = 1; i <= a.length; i++) {
    row[0] = i;
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
    [before, last, row] = [last, row, before];
  }
  return last[b.length];
}
