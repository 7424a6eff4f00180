// Uses a client of the HTTP API that a generator made from its OpenAPI document.
import { callTool, executeCode, getExecution, getHealth, listExecutions, listTools, searchTools } from "./client";
import { client } from "./client/client.gen";

declare const process: { env: Record<string, string> };

client.setConfig({ baseUrl: process.env.API, auth: "a-token-for-a-test" });
const throwOnError = true;

const health = await getHealth({ throwOnError });
console.log("health", health.data.status);

const tools = await listTools({ query: { upstream: "everything", limit: 3 }, throwOnError });
console.log("tools", tools.data.tools.length, tools.data.tools.every((tool) => tool.id.startsWith("everything.")));

const found = await searchTools({ query: { q: "add two numbers", detail: "names", limit: 1 }, throwOnError });
console.log("search", found.data.found.tools?.map((tool) => tool.id).join());

const called = await callTool({ path: { upstream: "everything", tool: "echo" }, body: { arguments: { message: "hi" } }, throwOnError });
console.log("call", JSON.stringify(called.data.content), called.data.status);

const ran = await executeCode({ body: { code: "print(6 * 7)", language: "python" }, throwOnError });
console.log("execute", JSON.stringify(ran.data.output), ran.data.error === undefined);

const one = await getExecution({ path: { id: ran.data.id }, throwOnError });
const listed = await listExecutions({ query: { limit: 10 }, throwOnError });
console.log("record", one.data.status, listed.data.executions.some((execution) => execution.id === ran.data.id));

const missing = await getExecution({ path: { id: "no-such" } });
console.log("problem", missing.response.status, missing.error?.status, missing.error?.title);

const wrong = await listTools({ auth: "wrong" });
console.log("token", wrong.response.status, wrong.error?.status);
