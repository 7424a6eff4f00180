import { read_text_file } from "servers/filesystem";
import { get_sum } from "servers/everything";

console.log((await read_text_file({ path: "{files}/pairs.csv", head: 3 })).content);
console.log(await get_sum({ a: 1, b: 2 }));
