// The site of the Markdown in docs/ and of the pages at the root. The build fails on a dead link or anchor.
// SITE_BASE is the path at which the site is served (/). SITE_REPOSITORY is the URL of a folder of the repository's
// files; without it, a link to a folder that is not on the site is plain text.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { checkLinks } from "./check.mjs";
import { githubSlug, outputOf, siteLinks } from "./links.mjs";
import { navigation } from "./navigation.mjs";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const repository = process.env.SITE_REPOSITORY ?? "";
const links = siteLinks(root, repository);

// The pages have no node_modules above them: what they import is resolved from here.
const vueForPages = {
  name: "vue-for-pages",
  enforce: "pre",
  resolveId(id, importer, options) {
    const fromPage = /^vue($|\/)/.test(id) && importer?.endsWith(".md");
    return fromPage ? this.resolve(id, fileURLToPath(import.meta.url), { ...options, skipSelf: true }) : null;
  },
};

export default defineConfig({
  title: "Sallyport",
  description: "One MCP server in front of all your others",
  base: process.env.SITE_BASE ?? "/",
  srcDir: root,
  srcExclude: ["!(docs)/*/**", "!(docs)/*"],
  rewrites: outputOf,
  ignoreDeadLinks: "localhostLinks",
  outDir: `${root}/.cache/site`,
  cacheDir: `${root}/.cache/vitepress`,
  metaChunk: true,
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    anchor: { slugify: githubSlug },
    attrs: { disable: true }, // {name} in a heading is a part of it
    config: links.plugin,
  },
  themeConfig: {
    nav: [{ text: "All pages", link: "/pages" }],
    sidebar: navigation(root),
    outline: [2, 3],
    externalLinkIcon: true,
    search: {
      provider: "local",
      // A guide comes before the reference, and a page before its sections.
      options: {
        miniSearch: {
          searchOptions: {
            boostDocument: (id, _, stored) => (/\/(reference|changelog)/.test(id) ? 0.3 : 1) * (stored.titles?.length ? 1 : 2),
          },
        },
      },
    },
    socialLinks: repository ? [{ icon: "git", link: repository, ariaLabel: "The repository" }] : undefined,
  },
  vite: {
    plugins: [vueForPages],
    build: { chunkSizeWarningLimit: 4096 },
    logLevel: "warn",
  },
  async buildEnd(site) {
    await links.copyFiles(site.outDir);
    await checkLinks(site.outDir, site.site.base);
  },
});

