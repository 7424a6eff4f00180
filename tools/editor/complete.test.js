// What is completed where: each case is a program with the cursor at "|", and the labels that are offered; null is none.
import { completions, languages } from "./complete.js";

const catalog = {
  servers: async () => [{ name: "crm" }, { name: "hr", about: "People" }],
  functions: async (server) => new Map(Object.entries({
    crm: [{ name: "find", signature: "crm.find(...)", parameters: [{ name: "id", type: "str", required: true }, { name: "limit", type: "int" }, { name: "order-by", type: "str" }] }, { name: "list" }],
    sallyport: [{ name: "emit" }],
  })).get(server) ?? [],
};

const cases = {
  python: [
    ["from |", "servers sallyport"],
    ["from servers.|", "crm hr"],
    ["import servers.c|", "crm hr"],
    ["x = 1\nfrom servers import |", "crm hr"],
    ["from servers import (crm, |)", "crm hr"],
    ["from servers.crm import find, l|", "find list"],
    ["from servers.crm import (find,\n  l|", "find list"],
    ["from servers.crm import (\n  |", "find list"],
    ["from servers.crm import find\nfind(\n  id=1,\n  |)", "limit order-by"],
    ["from servers.hr import |", null],
    ["from sallyport import |", "emit"],
    ["from servers.crm import find\nfind(|)", "id limit order-by"],
    ["from servers.crm import find\nfind(id='a(', |)", "limit order-by"],
    ["from servers.crm import find\nfind(l|, id=1)", "limit order-by find"],
    ["from servers.crm import find as f\nprint(f(i|))", "id limit order-by f"],
    ["from servers import crm\ncrm.|", "find list"],
    ["from servers import crm as c\nc.find(|)", "id limit order-by"],
    ["import servers.crm\nservers.crm.f|", "find list"],
    ["from servers.crm import find\nfind([|])", null],
    ["from servers.crm import find\nx = \"find(|", null],
    ["from servers.crm import find\n# find(|", null],
    ["from servers.crm import find\nx = '''\nfind(|", null],
    ["from servers.crm import find\n\"\\\"\"; find(|", "id limit order-by"],
    ["from servers.crm import find\nfi|", "find"],
    ["crm.|", null],
    ["other(|)", null],
    ["constructor.|", null],
    ["from servers.constructor import |", null],
  ],
  typescript: [
    ['import { find } from "servers/|', "crm hr"],
    ['import { | } from "servers/crm";', "find list"],
    ['import { find, l| } from "servers/crm";', "find list"],
    ['import { | } from "servers";', "crm hr"],
    ['import { | } from "sallyport";', "emit"],
    ['import { find } from "servers/crm";\nawait find({ | });', "id limit order-by"],
    ['import { find } from "servers/crm";\nawait find({ id: "{(", | });', "limit order-by"],
    ['import { find as f } from "servers/crm";\nawait f({ i| });', "id limit order-by f"],
    ['import { find } from "servers/crm";\nawait find(|);', null],
    ['import { find } from "servers/crm";\nawait find({ id: | });', null],
    ['import { find } from "servers/crm";\n// find({ |', null],
    ['import * as c from "servers/crm";\nc.|', "find list"],
    ['import { crm } from "servers";\nawait crm.find({ | });', "id limit order-by"],
    ["x.|", null],
  ],
};

let wrong = 0;
for (const [name, list] of Object.entries(cases)) {
  const source = completions(languages[name], catalog);
  for (const [program, want] of list) {
    const pos = program.indexOf("|"), doc = program.replace("|", "");
    const found = await source({ state: { doc }, pos, explicit: false, aborted: false });
    const got = found && found.options.map((o) => o.label).join(" ");
    if (got !== want) {
      wrong++;
      console.log(`${name}: ${JSON.stringify(program)}: ${got}, want ${want}`);
    }
    const applied = found?.options.find((o) => o.label === "order-by")?.apply;
    if (name === "typescript" && applied && applied !== '"order-by": ') console.log("applied:", applied, wrong++);
  }
}
process.exit(wrong ? 1 : 0);
