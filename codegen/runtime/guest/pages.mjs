// Implements iterate: follows the pages of a tool, using its spec and its results.
// The names are compared without case and punctuation, as codegen/pages.go does. pages.py has the same rules.

import { rename } from "./check.mjs";

const NEXT = `nextcursor nextpagetoken nexttoken endcursor nextpagecursor nextstartcursor continuationtoken continuation nextmarker scrollid odatanextlink
 nextlink nextpageuri nextpageurl nexturl nextpage nextoffset nextskiptoken next cursor`.split(/\s+/);
const MORE = ["hasmore", "hasnextpage", "hasnext", "morepages", "moreavailable", "hasadditionalresults", "istruncated"];
const LAST = ["islast", "islastpage", "lastpage"];
const ITEMS = "items results data value values entries records nodes edges rows documents hits resources objects list".split(" ");
const BESIDE = "errors warnings facets links included includes columns headers fields tags labels notes suggestions".split(" ");
const DEPTH = 4; // levels of a result that are searched
const EMPTY = 50; // consecutive empty pages with a cursor

// asked is { tool, args, spec } of the first call, kit has call and ToolError.
export async function* pages({ tool, args, spec }, most, kit) {
  const how = spec ? JSON.parse(spec).pages : undefined;
  if (!how) throw new kit.ToolError(`${tool} has no parameter for pages`, "invalid", tool, "call it once: what it returns is all");
  if (most !== undefined && (!Number.isInteger(most) || most < 0)) throw new TypeError("max_items is a whole number");
  const walk = new Walk(tool, rename(args ?? {}, spec), how, most, kit);
  while (walk.args) yield* walk.take(await kit.call(tool, walk.args, spec));
}

// The state of an iteration. args holds the arguments of the next call, undefined at the end.
class Walk {
  constructor(tool, args, how, most, kit) {
    Object.assign(this, { tool, how, most, kit, by: how.by, name: how.name, path: how.items, pages: 0, empty: 0 });
    this.args = most === 0 ? undefined : { ...args };
    if (this.counts()) {
      this.at = Number(args[this.name] ?? (this.by === "page" ? (how.first ?? 1) : 0));
      if (this.args) this.args[this.name] = this.at;
    }
    this.seen = new Set([args[this.name]]);
  }

  counts() {
    return this.by === "page" || this.by === "offset";
  }

  // Returns the items of one page, and prepares the next call.
  take(result) {
    let items = this.items(result);
    this.pages++;
    this.empty = items.length ? 0 : this.empty + 1;
    const following = this.onward(result, items);
    if (this.most !== undefined) {
      items = items.slice(0, this.most);
      this.most -= items.length;
    }
    this.args = following === undefined || this.most === 0 ? undefined : { ...this.args, [this.name]: following };
    return items.length && items.every(isEdge) ? items.map((item) => item.node) : items;
  }

  // Returns the parameter value for the next page, undefined if there is none.
  onward(result, items) {
    if (this.saysEnd(result)) return undefined;
    if (this.counts()) return this.count(result, items);
    const cursor = this.by === "last" ? lastId(items) : this.cursor(result);
    if (cursor === undefined || cursor === null || cursor === "" || cursor === false || this.empty > EMPTY) return undefined;
    if (this.seen.has(cursor)) {
      throw this.error(`${this.tool} answers with the cursor "${String(cursor).slice(0, 60)}" a second time: its pages go in a circle`, `it may ignore ${this.name}`);
    }
    this.seen.add(cursor);
    return cursor;
  }

  count(result, items) {
    if (!items.length) return undefined;
    const page = JSON.stringify(items);
    if (page === this.before) throw this.error(`${this.tool} answers with the same page again: it seems to ignore ${this.name}`, "call it once: what it returns may be all");
    this.before = page;
    const told = find(result, this.by === "page" ? ["nextpage"] : ["nextoffset"], (v) => v === null || Number.isInteger(v));
    if (told && told[0] === null) return undefined;
    this.at = told && told[0] > this.at ? told[0] : this.at + (this.by === "page" ? 1 : items.length);
    return this.at;
  }

  saysEnd(result) {
    const isFlag = (v) => typeof v === "boolean";
    const more = this.how.more ? [dig(result, this.how.more)] : find(result, MORE, isFlag);
    return more?.[0] === false || find(result, LAST, isFlag)?.[0] === true;
  }

  cursor(result) {
    let found = this.how.next ? dig(result, this.how.next) : undefined;
    found ??= find(result, NEXT, (v) => (typeof v === "string" && v !== "") || typeof v === "number" || href(v) !== undefined)?.[0];
    found = href(found) ?? found;
    const isUrl = typeof found === "string" && found.includes("?") && (found[0] === "/" || found.slice(0, 9).includes("://"));
    return this.by === "cursor" && isUrl ? this.ofUrl(found) : found;
  }

  ofUrl(url) {
    const given = [...new URLSearchParams(url.slice(url.indexOf("?") + 1).split("#")[0])];
    const own = given.find(([name]) => letters(name) === letters(this.name)) ?? given.find(([name]) => /token|cursor/.test(letters(name)));
    return own ? own[1] : url;
  }

  items(result) {
    if (Array.isArray(result)) return result;
    if (isObject(result)) {
      let found = this.path ? dig(result, this.path) : undefined;
      if (!Array.isArray(found)) [this.path, found] = this.look(result);
      return found;
    }
    if (result === null || result === undefined || (this.pages && typeof result === "string")) return [];
    throw this.error(`${this.tool} answers with ${typeof result === "string" ? "text" : typeof result}, not with a list`, `call it yourself, with ${this.name}: ..., and read the text`);
  }

  // Returns the path of the list in a result, and the list: the only one or the one with a common name, the topmost first.
  look(result) {
    for (const level of levels(result)) {
      const lists = level.filter(([path, value]) => Array.isArray(value) && !BESIDE.includes(letters(path.at(-1))));
      if (lists.length === 1) return lists[0];
      const usual = first(lists, ITEMS);
      if (usual) return usual;
      if (lists.length) {
        const names = lists.slice(0, 6).map(([path]) => path.join(".")).join(", ");
        throw this.error(`${this.tool} answers with several lists (${names}): which one is meant cannot be told`, `call it yourself, page by page, with ${this.name}`);
      }
    }
    const values = Object.values(result);
    if (this.pages === 0 && !this.path && values.length && !values.some((v) => v === null || v === 0 || v === false)) {
      throw this.error(`there is no list in what ${this.tool} answers`, "call it once, and look with shape_of(result)");
    }
    return [this.path, []];
  }

  error(message, hint) {
    return new this.kit.ToolError(message, "failed", this.tool, hint);
  }
}

const letters = (name) => String(name).toLowerCase().replace(/[^a-z0-9]/g, "");
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value) && Object.getPrototypeOf(value) === Object.prototype;
const isEdge = (item) => isObject(item) && "node" in item && Object.keys(item).every((key) => ["node", "cursor", "__typename"].includes(key));
const href = (value) => (isObject(value) && typeof value.href === "string" ? value.href : undefined);
const dig = (value, path) => path.reduce((at, name) => (isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined), value);

function lastId(items) {
  const last = items.at(-1);
  return isObject(last) ? last.id : last;
}

// Yields the members of a result, level by level: lists of [path, value].
function* levels(result) {
  let level = isObject(result) ? [[[], result]] : [];
  for (let depth = 0; depth < DEPTH; depth++) {
    level = level.filter(([, value]) => isObject(value)).flatMap(([path, value]) => Object.entries(value).map(([name, inner]) => [[...path, name], inner])).slice(0, 2000);
    if (!level.length) return;
    yield level;
  }
}

// Returns the entry of a level whose name comes first in names.
function first(entries, names) {
  const ranked = entries.map((entry) => [names.indexOf(letters(entry[0].at(-1))), entry]).filter(([rank]) => rank >= 0);
  return ranked.sort((a, b) => a[0] - b[0])[0]?.[1];
}

// Returns [value] of the topmost member with one of names, the first name first, or undefined.
function find(result, names, fit) {
  for (const level of levels(result)) {
    const found = first(level.filter(([, value]) => fit(value)), names);
    if (found) return [found[1]];
  }
  return undefined;
}
