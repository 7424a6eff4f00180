import { list_directory } from "servers/filesystem";
import { git_log } from "servers/git";

const last = [];
for (const file of (await list_directory({ path: "{repo}/src" })).content.trim().split("\n")) {
  const { commits } = await git_log({ path: "{repo}", filePath: "src/" + file, maxCount: 1 });
  last.push({ file, author: commits[0].author, date: commits[0].date });
}
last.sort((a, b) => (a.date < b.date ? -1 : 1));
last[0].file + " " + last[0].author;
