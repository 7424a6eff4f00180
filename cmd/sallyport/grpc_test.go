package main_test

import (
	"testing"

	"sallyport/internal/testutil/grpcserver"
)

// TestGRPCUpstream: a gRPC server is added by its URL, and programs in both languages call its methods.
func TestGRPCUpstream(t *testing.T) {
	t.Parallel()
	s := newAPISite(t, grpcserver.Key)
	url := grpcserver.Start(t, grpcserver.Options{}).URL()
	s.run(t, "added shop", "upstreams", "add", "shop", "--grpc", url, "--header", "X-Key=${SHOP_KEY}")
	s.run(t, "added second to upstreams.yaml: 8 tools", "add", "grpc:"+url, "--name", "second", "--header", "X-Key=${SHOP_KEY}", "--yes")
	s.run(t, "removed second", "upstreams", "remove", "second")
	s.run(t, "8 tools", "upstreams", "test", "shop")
	s.run(t, "grpc", "upstreams", "list")
	s.run(t, "SaveOrder", "search", "save an order")
	s.exec(t, "9007199254740993 ann True | STATE_OPEN 2 b'hi' | 2 True | gRPC NOT_FOUND: there is no order 404", "a.py", `
import base64
from servers.shop import Orders_GetOrder, SaveOrder, ListOrders
one = Orders_GetOrder(id=9007199254740993)
saved = SaveOrder(state="STATE_OPEN", items=[{"name": "pen", "count": 2}], photo=base64.b64encode(b"hi").decode(), parent={"id": 7})
page = ListOrders(count=5, max_messages=2)
try:
    Orders_GetOrder(id=404)
    fault = ""
except Exception as e:
    fault = str(e)
print(one["id"], one["customerName"], "card" not in one, "|", saved["state"], saved["items"][0]["count"], base64.b64decode(saved["photo"]), "|", len(page["messages"]), page["truncated"], "|", fault)
`)
	s.exec(t, "9007199254740993 1.2 child 3", "b.ts", `
import { Orders_GetOrder, SaveOrder, ListOrders, Version } from "./servers/shop";
const one = await Orders_GetOrder({ id: "9007199254740993" });
const saved = await SaveOrder({ tree: { name: "root", children: [{ name: "child" }] } });
const page = await ListOrders({ count: 3 });
console.log(one.id, await Version({}), saved.tree!.children[0].name, page.messages.length);
`)
}
