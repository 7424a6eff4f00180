import { read_graph } from "servers/memory";
const { entities, relations } = await read_graph();
[entities[0], entities.at(-1), ...relations.slice(0, 2)]
