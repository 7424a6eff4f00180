// The navigation has the sections of docs/README.md, and in each the pages that it links.
import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { isPage, outputOf } from "./links.mjs";

/** navigation returns the side bar. */
export function navigation(root) {
  const groups = readFileSync(join(root, "docs/README.md"), "utf8").split(/^## /m).slice(1);
  const start = { text: "Start", items: [{ text: "Overview", link: "/" }, { text: "All pages", link: "/pages" }] };
  return [start, ...groups.map(group)].filter(({ items }) => items.length > 0);
}

function group(section) {
  const [heading] = section.split("\n", 1);
  const items = [...section.matchAll(/\[([^\]]+)\]\(([^)#\s]+)\)/g)]
    .map(([, text, href]) => ({ text: text[0].toUpperCase() + text.slice(1), file: posix.join("docs", href) }))
    .filter(({ file }) => isPage(file))
    .map(({ text, file }) => ({ text, link: `/${outputOf(file).replace(/(index)?\.md$/, "")}` }));
  return { text: heading.trim(), items };
}
