// Type errors of the program, as the gateway finds them: it is asked when nothing was typed for a moment. They are marked in
// the text, and listed below it for people who do not see marks or use no mouse. All texts are shown as text.
import { StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, ViewPlugin, hoverTooltip } from "@codemirror/view";

const pause = 500, later = 3000, attempts = 20;

const setErrors = StateEffect.define();

// errors has the marks of the errors that were found last. They move with the text.
const errors = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    marks = marks.map(transaction.changes);
    for (const e of transaction.effects) if (e.is(setErrors)) marks = Decoration.set(e.value.map((found) => mark(transaction.newDoc, found)), true);
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

// lineOf returns the line of an error, also if the text has fewer lines.
const lineOf = (doc, error) => doc.line(Math.min(Math.max(error.line, 1), doc.lines));

// mark marks the line of an error; a line without text has a mark at its end.
function mark(doc, error) {
  const line = lineOf(doc, error), from = line.from + /^\s*/.exec(line.text)[0].length;
  const spec = { class: error.certain ? "cm-error" : "cm-warning", message: error.message };
  return from < line.to ? Decoration.mark(spec).range(from, line.to) : Decoration.line(spec).range(line.from);
}

// messages shows the errors of a position.
const messages = hoverTooltip((view, pos) => {
  const found = [];
  view.state.field(errors).between(pos, pos, (from, to, { spec }) => { found.push(spec.message); });
  if (found.length === 0) return null;
  return { pos, create() { const dom = document.createElement("div"); dom.className = "cm-message"; dom.textContent = found.join("\n"); return { dom }; } };
});

// checker returns an extension that asks for the errors after each change, and again, which asks at once. Errors are listed in
// list; what keeps the program from being checked is said in status.
export function checker(ask, status, list) {
  let timer, request, stopped = false;

  function show(view, found, text) {
    view.dispatch({ effects: setErrors.of(found) });
    list.hidden = found.length === 0;
    list.replaceChildren(...found.map((e) => item(view, e)));
    if (status.textContent !== text) status.textContent = text;
  }
  async function check(view, left) {
    request?.abort();
    const mine = (request = new AbortController()), doc = view.state.doc;
    if (stopped) return;
    if (doc.toString().trim() === "") { show(view, [], ""); return; }
    const found = await ask({ code: doc.toString(), signal: mine.signal }).catch(() => null);
    if (request !== mine || view.state.doc !== doc) return;
    stopped = found?.stop ?? false;
    const wrong = found?.errors ?? [];
    show(view, wrong, found?.message ?? ["", "1 type error."][wrong.length] ?? wrong.length + " type errors.");
    if (found?.retry && left > 0) schedule(view, later, left - 1);
  }
  function schedule(view, wait, left) {
    clearTimeout(timer);
    timer = setTimeout(() => check(view, left), wait);
  }
  const watch = ViewPlugin.fromClass(class {
    update(u) { if (u.docChanged) { request?.abort(); schedule(u.view, pause, attempts); } }
    destroy() { clearTimeout(timer); request?.abort(); }
  });
  return { extension: [errors, messages, watch], again(view) { stopped = false; schedule(view, 0, attempts); } };
}

// item is an error in the list: a button that leads to its line, and the message.
function item(view, error) {
  const li = document.createElement("li"), button = document.createElement("button"), text = document.createElement("span"), line = lineOf(view.state.doc, error);
  button.type = "button";
  button.className = "quiet";
  button.textContent = "Line " + line.number;
  button.addEventListener("click", () => {
    view.dispatch({ selection: { anchor: Math.min(line.from, view.state.doc.length) }, scrollIntoView: true });
    view.focus();
  });
  text.textContent = error.message;
  li.append(button, text);
  return li;
}
