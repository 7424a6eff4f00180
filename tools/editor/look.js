// How the editor looks: the properties of the page's style sheet have the colours, light and dark.
import { EditorView } from "@codemirror/view";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";

const words = HighlightStyle.define([
  { tag: [tags.keyword, tags.self, tags.bool, tags.null], color: "var(--busy)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: tags.number, color: "var(--warn)" },
  { tag: [tags.comment, tags.meta], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName), tags.className, tags.typeName], color: "var(--accent)" },
]);

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--ink)", border: "1px solid var(--edge)", borderRadius: "6px", fontSize: ".92em" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.45", maxHeight: "70vh", overflow: "auto" },
  ".cm-content, .cm-gutter": { minHeight: "18em" },
  ".cm-content": { caretColor: "var(--ink)", padding: ".3rem 0" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--muted)", border: "0", borderRight: "1px solid var(--line)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--raised)", outline: "1px solid var(--edge)" },
  ".cm-nonmatchingBracket, &.cm-focused .cm-nonmatchingBracket": { backgroundColor: "transparent", color: "var(--bad)" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--ink)", border: "1px solid var(--edge)", borderRadius: "6px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "14em", minWidth: "min(16em, 60vw)", maxWidth: "min(34em, 80vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: ".1rem .5rem", overflow: "hidden", textOverflow: "ellipsis" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { fontStyle: "normal", opacity: ".85" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionInfo": { whiteSpace: "pre-wrap", overflowWrap: "anywhere", maxHeight: "16em", overflow: "auto", padding: ".35rem .55rem", maxWidth: "min(30em, 80vw)" },
  ".cm-completionInfo.cm-completionInfo-left-narrow, .cm-completionInfo.cm-completionInfo-right-narrow": { // below the list
    top: "100% !important", bottom: "auto !important", left: "0", right: "0", maxWidth: "none !important", maxHeight: "9em",
  },
  ".cm-message": { whiteSpace: "pre-wrap", overflowWrap: "anywhere", padding: ".25rem .55rem", maxWidth: "min(40em, 80vw)" },
  ".cm-error, .cm-warning": { textDecoration: "underline wavy 1px", textUnderlineOffset: ".2em" },
  ".cm-error": { textDecorationColor: "var(--bad)" },
  ".cm-warning": { textDecorationColor: "var(--warn)" },
});

// look returns the extensions.
export function look() {
  return [theme, syntaxHighlighting(words)];
}
