import { readFileSync, readdirSync } from "node:fs";

for (const name of readdirSync("/workspace/tickets").sort()) {
  const lines = readFileSync(`/workspace/tickets/${name}`, "utf8").trim().split("\n");
  console.log(`${name}: ${lines.length - 1} tickets, the first is ${lines[1].split(",")[0]}`);
}
try {
  readFileSync("/etc/shadow");
} catch (error) {
  console.log(`/etc/shadow: ${(error as any).code}`);
}
