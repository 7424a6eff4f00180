// Every link and picture of the built pages leads to a file of the site, and every anchor to an element.
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { join, posix } from "node:path";

/** checkLinks throws an error that names all dead links of the site in a folder. */
export async function checkLinks(out, base) {
  const pages = readdirSync(out, { recursive: true }).filter((file) => file.endsWith(".html") && !file.startsWith("files"));
  const texts = new Map(pages.map((page) => [page, readFileSync(join(out, page), "utf8")]));
  const anchors = new Map([...texts].map(([page, text]) => [page, new Set([...text.matchAll(/ id="([^"]*)"/g)].map(([, id]) => decode(id)))]));
  const dead = new Set();
  let checked = 0;
  for (const [page, text] of texts) {
    for (const [, , link] of text.matchAll(/ (href|src|srcset)="([^"]*)"/g)) {
      if (/^([a-z][a-z+.-]*:|\/\/)/i.test(link)) continue;
      checked++;
      const [path, anchor] = decode(link).split("#", 2);
      const file = path === "" ? page : fileOf(out, path.startsWith(base) ? path.slice(base.length) : posix.join(posix.dirname(page), path));
      if (!file) dead.add(`${page}: ${link} leads to no file`);
      else if (anchor && file.endsWith(".html") && !anchors.get(file)?.has(anchor)) dead.add(`${page}: ${link} leads to no heading`);
    }
  }
  if (dead.size > 0) throw new Error(`dead links:\n${[...dead].join("\n")}`);
  console.log(`${pages.length} pages, ${checked} links, none dead`);
}

function fileOf(out, path) {
  return [path, `${path}.html`, posix.join(path, "index.html")].find((file) => existsSync(join(out, file)) && statSync(join(out, file)).isFile());
}

function decode(text) {
  return decodeURI(text.replaceAll("&amp;", "&").replaceAll("&quot;", '"').replaceAll("&#39;", "'"));
}
