package plugin_test

import (
	"testing"
)

const shopManifest = `name: shop
version: 1.0.0
description: orders of a shop
tools: [price, order, find, crash]
read_only: [price]
`

const shopPython = `
from typing import Annotated, Literal, TypedDict

class Order(TypedDict):
    id: int
    note: str

def price(item: str) -> float:
    """Price of an item, in euros."""
    print("looking up", item)
    return {"pen": 1.5, "book": 12.0}[item]

async def order(item: Annotated[str, "what to order"], count: int = 1, size: Literal["s", "l"] = "s") -> Order:
    """Orders an item."""
    return {"id": 7, "note": f"{count} {item} ({size})"}

def find(words: list[str] | None = None):
    """Finds items."""
    return words or ["pen", "book"]

def crash():
    """Ends the process."""
    import os
    os._exit(3)
`

func TestTools(t *testing.T) {
	t.Parallel()
	h := open(t, "", files{"shop/plugin.yaml": shopManifest, "shop/main.py": shopPython})
	h.await("shop.price")
	h.want("shop.price", `{"item":"pen"}`, `1.5`)
	h.want("shop.order", `{"item":"pen","count":2}`, `{"id":7,"note":"2 pen (s)"}`)
	h.want("shop.find", `{}`, `["pen","book"]`)
	h.want("shop.find", `{"words":["ink"]}`, `["ink"]`)
	h.refused("shop.price", `{"item":"car"}`, "KeyError: 'car' (main.py:")
	h.refused("shop.price", `{"thing":"car"}`, "item")
	h.refused("shop.order", `{"item":"pen","size":"xl"}`, "size")
	h.refused("shop.crash", `{}`, "plugin shop", "exited")
}

const scriptManifest = `name: script
version: 1.0.0
tools: [total, pick, later]
`

const script = `
import { scale } from "./scale";

interface Line { price: number; count?: number }

/** Sums lines. */
export async function total(lines: Line[], currency: "EUR" | "USD" = "EUR"): Promise<string> {
  return lines.reduce((sum, l) => sum + l.price * scale * (l.count ?? 1), 0).toFixed(2) + " " + currency;
}

export function pick(from: Record<string, number>, name: string): number {
  console.log("picking", name);
  if (!(name in from)) throw new RangeError("no " + name);
  return from[name];
}

export const later = async (ms = 1) => new Promise((resolve) => setTimeout(() => resolve({ ms }), ms));
`

func TestTypeScript(t *testing.T) {
	t.Parallel()
	h := open(t, "", files{"script/plugin.yaml": scriptManifest, "script/main.ts": script, "script/scale.ts": "export const scale = 1;\n"})
	h.await("script.total")
	h.want("script.total", `{"lines":[{"price":2,"count":3},{"price":1}]}`, `"7.00 EUR"`)
	h.want("script.total", `{"lines":[],"currency":"USD"}`, `"0.00 USD"`)
	h.want("script.pick", `{"from":{"a":3},"name":"a"}`, `3`)
	h.want("script.later", `{}`, `{"ms":1}`)
	h.refused("script.pick", `{"from":{"a":3},"name":"b"}`, "RangeError: no b")
	h.refused("script.total", `{"lines":[{"count":3}]}`, "price")
	h.refused("script.total", `{"lines":[],"currency":"DM"}`, "currency")
}

// rules are hooks around the tools of the shop.
const rulesManifest = `name: rules
version: 1.0.0
hooks:
  - before: [shop.order]
    run: limit
  - after: [shop.find, shop.order]
    run: reduce
  - before: [shop.price]
    run: broken
    on_failure: pass
`

const rulesPython = `
def limit(tool, arguments):
    count = arguments.get("count", 1)
    if count > 10:
        return {"deny": f"{count} are more than 10"}
    if count > 5:
        return {"ask": "more than 5"}
    if count == 0:
        return {"arguments": {**arguments, "count": 1}}
    if count < 0:
        return {"arguments": {**arguments, "count": "none"}}
    if arguments["item"] == "bug":
        raise ValueError("oh")
    if arguments["item"] == "odd":
        return "no"

def reduce(tool, arguments, result):
    if tool == "shop.find":
        if "secret" in result:
            return {"deny": "it is secret"}
        if "gold" in result:
            return {"result": [w for w in result if w != "gold"]}
    elif result["note"].startswith("1 pen"):
        return {"result": {**result, "note": "a pen"}}

def broken(tool, arguments):
    raise ValueError("always")
`

func shopWithRules() files {
	return files{"shop/plugin.yaml": shopManifest, "shop/main.py": shopPython, "rules/plugin.yaml": rulesManifest, "rules/main.py": rulesPython}
}

func TestHooks(t *testing.T) {
	t.Parallel()
	h := open(t, "", shopWithRules())
	h.await("shop.price")
	h.want("shop.order", `{"item":"book"}`, `{"id":7,"note":"1 book (s)"}`)
	h.refused("shop.order", `{"item":"book","count":11}`, "plugin rules refuses shop.order: 11 are more than 10")
	h.refused("shop.order", `{"item":"book","count":6}`, "approv")
	h.want("shop.order", `{"item":"pen","count":0}`, `{"id":7,"note":"a pen"}`)
	h.refused("shop.order", `{"item":"pen","count":-1}`, "count")
	h.refused("shop.order", `{"item":"bug"}`, "plugin rules guards shop.order and cannot judge the call: ValueError: oh (main.py:")
	h.refused("shop.order", `{"item":"odd"}`, "limit must return None")
	h.want("shop.find", `{"words":["gold","ink"]}`, `["ink"]`)
	h.refused("shop.find", `{"words":["secret"]}`, "withholds the result", "it is secret", "the call was made")
	h.want("shop.price", `{"item":"pen"}`, `1.5`)
}
