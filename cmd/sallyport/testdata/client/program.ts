import { Blob, connect, load, parallel, progress, save, search_tools, ToolError } from "./sallyport/index.js";
import { echo, get_sum, get_tiny_image, trigger_long_running_operation } from "./servers/everything/index.js";

console.log(await get_sum({ a: 40, b: 2 }));
console.log(JSON.stringify(await parallel([0, 1, 2].map((i) => () => echo({ message: String(i) })))));
console.log(JSON.stringify(((await get_tiny_image()) as unknown[]).filter((part) => part instanceof Blob).map((part) => (part as Blob).mime)));
const heard: number[] = [];
await progress((p) => heard.push(p.progress), () => trigger_long_running_operation({ duration: 0.2, steps: 2 }));
console.log(JSON.stringify(heard));
console.log((await search_tools("sum of two numbers")).includes("get_sum"));
save("kept", { a: 1 });
console.log(JSON.stringify(load("kept")));

async function failing(what: string, message: string): Promise<void> {
  try {
    await echo({ message });
  } catch (e) {
    if (e instanceof ToolError) console.log(what, e.code, e.tool, e.hint.split(/[:,]/)[0]);
    else throw e;
  }
}

await failing("long", 3 as unknown as string);
connect({ token: "wrong" });
await failing("token", "x");
connect({ url: "http://127.0.0.1:1" });
await failing("gateway", "x");
