// An MCP server for Node.js whose tool runs code, as server.py does.
import readline from "node:readline";

const AsyncFunction = (async () => {}).constructor;

async function run(code) {
  try {
    return (await new AsyncFunction(code)()) ?? null;
  } catch (err) {
    return `${err.name}: ${err.message} ${err.cause?.code ?? ""}`;
  }
}

async function respond({ method, params }) {
  if (method === "initialize") return { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "node", version: "1" } };
  if (method === "tools/list") return { tools: [{ name: "run", inputSchema: { type: "object", properties: { code: { type: "string" } } } }] };
  if (method === "tools/call") return { content: [{ type: "text", text: JSON.stringify(await run(params.arguments.code)) }] };
  return null;
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.id === undefined) continue;
  const result = await respond(request);
  const answer = result ? { result } : { error: { code: -32601, message: "no such method" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id: request.id, ...answer }));
}
