import { list_directory } from "servers/filesystem";
import { git_log } from "servers/git";

const listing = (await list_directory({ path: "{repo}/src" })).content.trim().split("\n");
const last = await Promise.all(listing.map(async (line) => {
  const file = line.replace("[FILE] ", "");
  const { commits } = await git_log({ path: "{repo}", filePath: "src/" + file, maxCount: 1 });
  return { file, author: commits[0].author, at: commits[0].timestamp };
}));
last.sort((a, b) => a.at - b.at);
last[0].file + " " + last[0].author;
