import { read_text_file } from "servers/filesystem";
import { get_sum } from "servers/everything";

const { content } = await read_text_file({ path: "{files}/pairs.csv" });
const pairs = content.trim().split("\n").slice(1).map((line) => line.split(",").map(Number));
const sums = await Promise.all(pairs.map(([a, b]) => get_sum({ a, b })));
Math.max(...sums.map((text) => Number(text.match(/is (\d+)\.$/)[1])));
