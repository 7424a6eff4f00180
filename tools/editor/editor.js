// The editor of the playground: it takes the place of the text field of the form, which keeps the text and sends it. It is
// mounted in a shadow root, so that its style sheets are adopted ones, which the policy of the page allows.
import { EditorState, Compartment } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { history, historyKeymap, indentWithTab, standardKeymap } from "@codemirror/commands";
import { StreamLanguage, bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { autocompletion, closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { python } from "@codemirror/legacy-modes/mode/python";
import { typescript } from "@codemirror/legacy-modes/mode/javascript";
import { completions, languages } from "./complete.js";
import { checker } from "./check.js";
import { look } from "./look.js";

const modes = { python: StreamLanguage.define(python), typescript: StreamLanguage.define(typescript) };

// modeOf returns the extensions of a language.
function modeOf(name, catalogs) {
  return [modes[name], indentUnit.of(name === "python" ? "    " : "  "), autocompletion({ override: [completions(languages[name], catalogs[name])], icons: false })];
}

// catalogAt asks the gateway what programs in a language can import, once for each server.
function catalogAt(address, language) {
  const asked = new Map();
  const ask = (server) => {
    if (!asked.has(server)) asked.set(server, answer(address + "?" + new URLSearchParams({ language, server })).catch(() => { asked.delete(server); }));
    return asked.get(server);
  };
  return {
    servers: async () => (await ask(""))?.servers ?? [],
    functions: async (server) => (await ask(server))?.functions ?? [],
  };
}

// answer returns the JSON that an address answers with.
async function answer(address, options) {
  const response = await fetch(address, options);
  if (!response.ok || !response.headers.get("Content-Type")?.startsWith("application/json")) throw new Error("no answer");
  return response.json();
}

function mount(field) {
  const form = field.form, select = form.elements.language, host = document.createElement("div");
  host.className = "editor";
  const root = host.attachShadow({ mode: "open" });
  field.after(host);
  const catalogs = Object.fromEntries(Object.keys(languages).map((name) => [name, catalogAt(field.dataset.completions, name)]));
  const chosen = () => (select.value in languages ? select.value : "python");
  const language = new Compartment();
  const check = checker((text) => answer(field.dataset.check, { method: "POST", signal: text.signal, body: new URLSearchParams({ language: chosen(), code: text.code }) }),
    document.getElementById("program-status"), document.getElementById("program-errors"));
  const view = new EditorView({
    root, parent: root,
    state: EditorState.create({
      doc: field.value,
      extensions: [
        lineNumbers(), history(), bracketMatching(), closeBrackets(), indentOnInput(), look(), language.of(modeOf(chosen(), catalogs)), check.extension,
        keymap.of([
          { key: "Mod-Enter", run: () => { form.requestSubmit(); return true; } },
          ...closeBracketsKeymap, ...standardKeymap, ...historyKeymap, indentWithTab,
        ]),
        EditorView.contentAttributes.of({ "aria-label": field.labels[0]?.textContent ?? "Program", tabindex: "0" }),
        EditorView.updateListener.of((update) => { if (update.docChanged) field.value = update.state.doc.toString(); }),
      ],
    }),
  });
  field.hidden = true;
  field.required = false; // a field that is not shown cannot be complained about
  field.labels[0]?.addEventListener("click", () => view.focus());
  form.addEventListener("submit", (event) => {
    if (field.value.trim() !== "") return;
    event.preventDefault();
    view.focus();
  });
  select.addEventListener("change", () => { view.dispatch({ effects: language.reconfigure(modeOf(chosen(), catalogs)) }); check.again(view); });
  document.getElementById("program-keys").hidden = false;
  check.again(view);
}

const field = document.querySelector("textarea[data-completions]");
if (field) mount(field);
