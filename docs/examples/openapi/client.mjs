// A client that knows the gateway by its OpenAPI document alone: npm install openapi-client-axios axios
import { OpenAPIClientAxios } from "openapi-client-axios";

const url = "http://127.0.0.1:8080";
const token = process.env.SALLYPORT_TOKEN;
const headers = token ? { Authorization: `Bearer ${token}` } : {};

// profile=clients names every operation; the names become methods.
const answer = await fetch(`${url}/openapi.json?profile=clients`, { headers });
const api = new OpenAPIClientAxios({
  definition: await answer.json(),
  withServer: { url },
  axiosConfigDefaults: { headers },
});
const client = await api.init();

const { data: search } = await client.search_tools({ q: "sum of two numbers", limit: 1 });
console.log(search.found.tools[0].text);

const code = `from servers.everything import get_sum
print(get_sum(a=2, b=40))`;
const { data: program } = await client.execute_code(null, { code, timeout: 30 });
console.log(program.status, program.output);

const { data: call } = await client.call_tool({ upstream: "everything", tool: "echo" }, { arguments: { message: "hello" } });
console.log(call.content[0].text);
