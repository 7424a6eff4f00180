import { list_directory } from "servers/filesystem";
import { git_log } from "servers/git";

const last = [];
for (const line of (await list_directory({ path: "{repo}/src" })).content.trim().split("\n")) {
  const file = line.replace("[FILE] ", "");
  const { commits } = await git_log({ path: "{repo}", filePath: "src/" + file, maxCount: 1 });
  last.push({ file, author: commits[0].author, at: commits[0].timestamp });
}
last.sort((a, b) => a.at - b.at);
last[0].file + " " + last[0].author;
