// One of two MCP clients of npm, driven by a test: a line of stdin is a call {id, tool, args}, a line of stdout its answer {id, text}.
import { createInterface } from "node:readline";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [kind, url] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${process.env.SALLYPORT_TOKEN}` };
const say = (line) => console.log(JSON.stringify(line));
const timeout = 120_000;

// sdk is the client of the protocol's own SDK. It opens pages for its person.
async function sdk() {
  const client = new Client({ name: "sdk", version: "1" }, { capabilities: { elicitation: { url: {} } } });
  client.setRequestHandler(ElicitRequestSchema, async (request) => {
    say({ open: request.params.url });
    return { action: "accept" };
  });
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  await client.connect(transport);
  say({ session: transport.sessionId ?? "" });
  return async (name, args) => {
    const result = await client.callTool({ name, arguments: args }, undefined, { timeout });
    return result.content.map((item) => item.text ?? "").join("\n");
  };
}

// langchain is the client of LangChain's agents. It opens nothing.
async function langchain() {
  const client = new MultiServerMCPClient({ mcpServers: { sallyport: { transport: "http", url, headers, defaultToolTimeout: timeout } } });
  const tools = await client.getTools();
  say({ session: "" });
  return async (name, args) => {
    const result = await tools.find((tool) => tool.name === name).invoke(args);
    return typeof result === "string" ? result : JSON.stringify(result);
  };
}

const call = await { sdk, langchain }[kind]();
for await (const line of createInterface({ input: process.stdin })) {
  const { id, tool, args } = JSON.parse(line);
  call(tool, args).then(
    (text) => say({ id, text }),
    (error) => say({ id, text: `error: ${error.message}` }),
  );
}
process.exit(0);
