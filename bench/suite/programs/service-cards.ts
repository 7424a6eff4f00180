import { read_graph } from "servers/memory";
import { create_directory, write_file } from "servers/filesystem";

const { entities, relations } = await read_graph();
const city = new Map<string, string>();
for (const e of entities) {
  const lives = e.observations.find((o) => o.startsWith("lives in "));
  if (lives) city.set(e.name, lives.slice("lives in ".length));
}
const folder = "{files}/out/service-cards";
await create_directory({ path: folder });
const onCall = relations.filter((r) => r.relationType === "on_call");
for (const r of onCall) {
  await write_file({ path: `${folder}/${r.from}.txt`, content: `${r.to}, ${city.get(r.to)}\n` });
}
onCall.length
