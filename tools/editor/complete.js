// What can be completed at a position of a program: servers, their functions, and the arguments of a call. What exists is
// asked of the gateway; only plain text of it is shown.

const python = {
  comment: "#",
  quotes: ['"""', "'''", '"', "'"],
  // imports finds the statements that import from servers: of a server, its functions; of servers, the servers themselves.
  functions: /^[ \t]*from[ \t]+servers\.(?<server>\w+)[ \t]+import[ \t]+(?<names>\([^)]*\)|[^\n#;]+)/gm,
  modules: /^[ \t]*from[ \t]+servers[ \t]+import[ \t]+(?<names>\([^)]*\)|[^\n#;]+)/gm,
  whole: null,
  alias: /^(\w+)(?:\s+as\s+(\w+))?$/,
  // places where a name of a kind is written, before the cursor.
  places: [
    { kind: "module", at: /^[ \t]*from[ \t]+\w*$/ },
    { kind: "server", at: /(?:^|;)[ \t]*(?:from|import)[ \t]+servers\.\w*$/ },
    { kind: "server", at: /^[ \t]*from[ \t]+servers[ \t]+import[ \t]+(?:\(?[\w\s,]*,\s*|\(\s*)?\w*$/ },
    { kind: "function", at: /^[ \t]*from[ \t]+servers\.(?<server>\w+)[ \t]+import[ \t]+(?:\(?[\w\s,]*,\s*|\(\s*)?\w*$/ },
    { kind: "builtin", at: /^[ \t]*from[ \t]+sallyport[ \t]+import[ \t]+(?:\(?[\w\s,]*,\s*|\(\s*)?\w*$/ },
  ],
  argument: (name) => name + "=",
};

const typescript = {
  comment: "//",
  quotes: ['"', "'", "`"],
  functions: /import\s*\{(?<names>[^}]*)\}\s*from\s*["']servers\/(?<server>\w+)["']/g,
  modules: /import\s*\{(?<names>[^}]*)\}\s*from\s*["']servers["']/g,
  whole: /import\s*\*\s*as\s+(?<name>\w+)\s*from\s*["']servers\/(?<server>\w+)["']/g,
  alias: /^(?:type\s+)?(\w+)(?:\s+as\s+(\w+))?$/,
  places: [
    { kind: "server", at: /(?:from|import)\s*\(?["']servers\/\w*$/ },
    { kind: "server", at: /import\s*\{[^}"']*$/, after: /^[^}"']*\}\s*from\s*["']servers["']/ },
    { kind: "function", at: /import\s*\{[^}"']*$/, after: /^[^}"']*\}\s*from\s*["']servers\/(?<server>\w+)["']/ },
    { kind: "builtin", at: /import\s*\{[^}"']*$/, after: /^[^}"']*\}\s*from\s*["']sallyport["']/ },
  ],
  argument: (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)) + ": ",
};

export const languages = { python, typescript };

// scan returns the open brackets of a text, and whether its end is in a string or a comment.
function scan(text, language) {
  const open = [];
  for (let i = 0; i < text.length; i++) {
    if (text.startsWith(language.comment, i)) {
      i = text.indexOf("\n", i);
      if (i < 0) return { open, quoted: true };
      continue;
    }
    const quote = language.quotes.find((q) => text.startsWith(q, i));
    if (quote) {
      i = stringEnd(text, i + quote.length, quote);
      if (i < 0) return { open, quoted: true };
    } else if ("([{".includes(text[i])) open.push(i);
    else if (")]}".includes(text[i])) open.pop();
  }
  return { open, quoted: false };
}

// stringEnd returns the index of the last character of a string that begins before from, -1 if it is open at the end.
function stringEnd(text, from, quote) {
  for (let i = from; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text.startsWith(quote, i)) return i + quote.length - 1;
    else if (text[i] === "\n" && quote.length === 1 && quote !== "`") return i;
  }
  return -1;
}

// names returns what a program has imported: servers, and functions of servers, by their names in the program.
function names(text, language) {
  const modules = new Map(), functions = new Map();
  const each = (list, add) => {
    for (const part of list.replace(/[()\\]/g, " ").split(",")) {
      const found = language.alias.exec(part.trim());
      if (found) add(found[2] ?? found[1], found[1]);
    }
  };
  for (const m of text.matchAll(language.functions)) each(m.groups.names, (local, name) => functions.set(local, { server: m.groups.server, name }));
  for (const m of text.matchAll(language.modules)) each(m.groups.names, (local, name) => modules.set(local, name));
  if (language.whole) for (const m of text.matchAll(language.whole)) modules.set(m.groups.name, m.groups.server);
  return { modules, functions };
}

// called returns the function that an expression before "(" names, undefined for any other.
function called(expression, imported) {
  const parts = expression.split(".");
  if (parts.length === 1) return imported.functions.get(parts[0]);
  const server = serverOf(parts.slice(0, -1).join("."), imported);
  return server && { server, name: parts.at(-1) };
}

// serverOf returns the server that an expression names: an imported one, or servers.NAME.
function serverOf(expression, imported) {
  return imported.modules.get(expression) ?? /^servers\.(\w+)$/.exec(expression)?.[1];
}

// call returns the call of an imported function in which an argument begins at the cursor, and the arguments that it has.
function call(text, after, open, language, imported) {
  let at = open.at(-1);
  if (at === undefined) return;
  if (language === typescript) {
    if (text[at] !== "{" || open.at(-2) === undefined || text.slice(open.at(-2) + 1, at).trim() !== "") return;
    at = open.at(-2);
  }
  if (text[at] !== "(" || !/[({,]\s*\w*$/.test(text)) return;
  const expression = /[\w.]+$/.exec(text.slice(0, at).trimEnd())?.[0];
  const found = expression && called(expression, imported);
  return found && { ...found, given: text.slice(open.at(-1)) + after.slice(0, 1000).split(/[)}]/)[0] };
}

const builtin = "sallyport";

// completions returns a source of completions. catalog asks the gateway: servers(), and functions(server).
export function completions(language, catalog) {
  return async (context) => {
    const doc = context.state.doc.toString(), text = doc.slice(0, context.pos), after = doc.slice(context.pos);
    const from = context.pos - /\w*$/.exec(text)[0].length;
    const options = await at(text, after, from, context.explicit, language, catalog);
    return options?.length && !context.aborted ? { from, options, validFor: /^\w*$/ } : null;
  };
}

// at returns what can be written between from and the end of text.
async function at(text, after, from, explicit, language, catalog) {
  const { open, quoted } = scan(text, language);
  const line = language === python ? text.slice(text.lastIndexOf("\n", open[0] ?? text.length) + 1) : text.slice(-4000);
  for (const place of language.places) {
    const found = place.at.exec(line), rest = place.after?.exec(after);
    if (found && (!place.after || rest)) return listed(place.kind, { ...found.groups, ...rest?.groups }.server, catalog);
  }
  if (quoted) return null;
  const imported = names(text + after, language), before = text.slice(0, from);
  const owner = /([\w.]+)\.$/.exec(before)?.[1];
  if (owner) {
    const server = serverOf(owner, imported);
    return server ? listed("function", server, catalog) : null;
  }
  const inside = call(text, after, open, language, imported);
  const known = explicit || from < text.length ? local(imported) : [];
  return inside ? [...(await parameters(inside, language, catalog)), ...known] : known;
}

// listed returns the completions of a kind.
async function listed(kind, server, catalog) {
  if (kind === "function" || kind === "builtin") return (await catalog.functions(server ?? builtin)).map(functionOption);
  if (kind === "server") return (await catalog.servers()).map((s) => ({ label: s.name, type: "namespace", info: s.about || undefined }));
  return [{ label: "servers", type: "namespace", info: "The functions of upstreams" }, { label: builtin, type: "namespace", info: "The functions of the gateway" }];
}

function functionOption(f) {
  return { label: f.name, type: "function", info: [f.signature, f.about].filter(Boolean).join("\n\n") };
}

// parameters returns the parameters of a function that a call does not have yet, the required ones first.
async function parameters(inside, language, catalog) {
  const found = (await catalog.functions(inside.server)).find((f) => f.name === inside.name);
  return (found?.parameters ?? []).filter((p) => !inside.given.includes(language.argument(p.name).trim())).map((p) => ({
    label: p.name, apply: language.argument(p.name), type: "property", detail: p.required ? p.type : p.type + ", optional", info: p.about || undefined, boost: p.required ? 2 : 1,
  }));
}

// local returns the names that a program has imported.
function local(imported) {
  return [...imported.functions.keys()].map((label) => ({ label, type: "function" })).concat([...imported.modules.keys()].map((label) => ({ label, type: "namespace" })));
}
