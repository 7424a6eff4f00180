// The tools of Sallyport for a LangChain agent. Without a model: what one would do is done here by hand.
import { MultiServerMCPClient } from "@langchain/mcp-adapters";

const token = process.env.SALLYPORT_TOKEN;
const client = new MultiServerMCPClient({
  mcpServers: {
    sallyport: {
      transport: "http",
      url: (process.env.SALLYPORT_URL ?? "http://127.0.0.1:8080") + "/mcp",
      headers: token ? { Authorization: `Bearer ${token}` } : {},
      defaultToolTimeout: 300_000, // a program may run for longer than the usual minute
    },
  },
});

try {
  const tools = await client.getTools(); // createAgent({ model, tools }) takes these
  console.log(tools.map((tool) => tool.name).join(" "));

  const [search, execute] = ["search_tools", "execute_code"].map((name) => tools.find((tool) => tool.name === name));
  console.log(await search.invoke({ query: "add two numbers" }));
  console.log(await execute.invoke({ code: "from servers.everything import get_sum\nget_sum(a=2, b=40)" }));
} finally {
  await client.close();
}
