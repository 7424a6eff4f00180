package catalog_test

import (
	"os"
	"path/filepath"
	"testing"

	"sallyport/codegen"
	"sallyport/gateway/upstream"
	"sallyport/internal/testutil/grpcserver"
)

const pythonGRPC = `from servers import shop

order = shop.Orders_GetOrder(id=17)
name: str = order["customerName"]
number: int = order["id"]  # wrong
saved = shop.SaveOrder(id="17", state="STATE_OPEN", items=[{"name": "pen", "count": 2}], stock={"a": 1}, card={"number": "1"}, parent={"id": 3})
state: str = saved["state"]
count: int = saved["items"][0]["count"]
node = saved.get("tree", {"name": "", "children": []})
child: str = node["children"][0]["name"]
shop.SaveOrder(state="STATE_ODD")  # wrong
shop.SaveOrder(created="2026-01-01T00:00:00Z")  # wrong
page = shop.ListOrders(count=3, max_messages=2)
note = page["messages"][0].get("note")
more: bool = page["truncated"]
version: str = shop.Version()
`

const typeScriptGRPC = `import { shop } from "./servers/index";

const order = await shop.Orders_GetOrder({ id: 17 });
export const name: string = order.customerName;
export const number: number = order.id; // wrong
const saved = await shop.SaveOrder({ items: [{ name: "pen", count: 2 }], state: "STATE_OPEN", tree: { children: [{ name: "c" }] } });
export const count: number | undefined = saved.items[0]?.count;
export const child: string | undefined = saved.tree?.children[0]?.name;
await shop.SaveOrder({ state: "STATE_ODD" }); // wrong
const page = await shop.ListOrders({ count: 3 });
export const more: boolean = page.truncated;
export const version: string = await shop.Version({});
`

// The wrappers of the methods of a gRPC server pass pyright and tsc, as strict as they can be, and have the types of its messages.
func TestGRPCTypeChecks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.binpb")
	if err := os.WriteFile(path, grpcserver.Descriptors, 0o600); err != nil {
		t.Fatal(err)
	}
	s := upstream.New(upstream.Settings{ID: "shop", GRPC: path, URL: "https://shop.example"}, nil)
	defer s.Close()
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	typeCheck(t, []codegen.Upstream{{ID: "shop", Tools: s.Tools()}}, pythonGRPC, typeScriptGRPC)
}
