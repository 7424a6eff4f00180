// Links of the Markdown, which are paths in the repository, become links of the site.
import { cpSync, existsSync, statSync } from "node:fs";
import { join, posix, relative } from "node:path";

const atRoot = ["README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md"];

/** isPage tells whether a path in the repository is a page of the site. */
export function isPage(path) {
  return atRoot.includes(path) || (path.startsWith("docs/") && path.endsWith(".md"));
}

/** outputOf returns the page on the site for one in the repository: README.md is index.md, docs/README.md is pages.md. */
export function outputOf(path) {
  if (path === "docs/README.md") return "pages.md";
  if (atRoot.includes(path)) return path === "README.md" ? "index.md" : path.toLowerCase();
  return path.replace(/^docs\//, "").replace(/(^|\/)README\.md$/, "$1index.md");
}

/** githubSlug makes the anchors that GitHub makes, so that one link works at both places. */
export function githubSlug(heading) {
  return heading.trim().toLowerCase().replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "").replaceAll(" ", "-");
}

/** siteLinks returns a plugin of markdown-it that rewrites links, and a function that copies the files that they lead to. */
export function siteLinks(root, repository) {
  const files = new Set();

  // target returns the link of the site for one of a page, or "" if it leads to nothing that the site has.
  function target(page, href) {
    if (href === "" || href.startsWith("#") || /^[a-z][a-z+.-]*:/i.test(href)) return href;
    const [, path, anchor] = /^([^#]*)(.*)$/.exec(href);
    const file = posix.join(posix.dirname(page), decodeURI(path));
    if (isPage(file)) return `/${outputOf(file)}${anchor}`;
    if (file.startsWith("../") || !existsSync(join(root, file))) {
      throw new Error(`${page} links to ${href}, which does not exist`);
    }
    if (statSync(join(root, file)).isDirectory()) {
      return repository && `${repository.replace(/\/$/, "")}/${file}`;
    }
    files.add(file);
    return `/files/${file}`;
  }

  function rewrite(page, tokens) {
    const plain = [];
    for (const token of tokens) {
      if (token.type === "link_open") {
        const href = target(page, token.attrGet("href"));
        plain.push(!href);
        token.attrSet("href", href);
        if (href.startsWith("/files/")) token.attrSet("target", "_self");
      }
      const hide = token.type === "link_open" ? plain.at(-1) : token.type === "link_close" && plain.pop();
      if (hide) {
        token.tag = "span";
        token.attrs = null;
      }
    }
  }

  function plugin(md) {
    md.core.ruler.after("inline", "site-links", (state) => {
      const page = relative(root, state.env.realPath ?? state.env.path);
      for (const token of state.tokens) if (token.children) rewrite(page, token.children);
    });
    // Vue would take {{ }} in code for an expression.
    const inline = md.renderer.rules.code_inline;
    md.renderer.rules.code_inline = (tokens, i, ...rest) => {
      tokens[i].attrSet("v-pre", "");
      return inline(tokens, i, ...rest);
    };
  }

  async function copyFiles(out) {
    for (const file of files) cpSync(join(root, file), join(out, "files", file));
  }

  return { plugin, copyFiles };
}
