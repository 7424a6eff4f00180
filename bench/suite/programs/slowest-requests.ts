import { read_text_file } from "servers/filesystem";

const requests: [string, number][] = [];
for (let n = 1; n <= 5; n++) {
  const { content } = await read_text_file({ path: `{files}/logs/app-${n}.log` });
  for (const line of content.trim().split("\n")) {
    const parts = line.split(/\s+/);
    requests.push([parts[2], parseInt(parts[5])]);
  }
}
requests.sort((a, b) => b[1] - a[1]);
requests.slice(0, 5).map(([id]) => id).join(", ")
