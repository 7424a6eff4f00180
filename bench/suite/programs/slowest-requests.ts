import { read_text_file } from "servers/filesystem";

const requests: { id: string; ms: number }[] = [];
for (let n = 1; n <= 5; n++) {
  const { content } = await read_text_file({ path: `{files}/logs/app-${n}.log` });
  for (const line of content.trim().split("\n")) {
    const parts = line.split(/\s+/);
    requests.push({ id: parts[2], ms: parseInt(parts[5]) });
  }
}
requests.sort((a, b) => b.ms - a.ms);
requests.slice(0, 5).map((r) => r.id).join(", ")
