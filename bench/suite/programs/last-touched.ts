import { list_directory } from "servers/filesystem";
import { git_log } from "servers/git";

const last = [];
for (const line of (await list_directory({ path: "{repo}/src" })).content.trim().split("\n")) {
  const file = line.replace("[FILE] ", "");
  const { commits } = await git_log({ path: "{repo}", filePath: "src/" + file, maxCount: 1 });
  last.push([commits[0].timestamp, file, commits[0].author]);
}
last.sort((a, b) => a[0] - b[0]);
last[0][1] + " " + last[0][2];
