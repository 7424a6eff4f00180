import { list_directory } from "servers/filesystem";
import { git_log } from "servers/git";

console.log((await list_directory({ path: "{repo}/src" })).content);
console.log((await git_log({ path: "{repo}", maxCount: 1 })).commits);
