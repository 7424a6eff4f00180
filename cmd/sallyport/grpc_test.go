package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/grpcserver"
)

// TestGRPCUpstream: a gRPC server is added by its URL, and programs in both languages call its methods.
func TestGRPCUpstream(t *testing.T) {
	t.Parallel()
	dir := testutil.ShortDir(t)
	settings := filepath.Join(dir, "upstreams.yaml")
	writeText(t, settings, "upstreams: {}\nsandbox: {runsc: "+testutil.Runsc(t)+", pool: {max: 0}}\n")
	run := func(want string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sallyport", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR="+dir, "SHOP_KEY="+grpcserver.Key)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, want %s in\n%s", args, err, want, out)
		}
	}
	program := func(name, text string) string {
		path := filepath.Join(dir, name)
		writeText(t, path, text)
		return path
	}
	url := grpcserver.Start(t, grpcserver.Options{}).URL()
	run("added shop", "upstreams", "add", "shop", "--grpc", url, "--header", "X-Key=${SHOP_KEY}")
	run("added second to upstreams.yaml: 8 tools", "add", "grpc:"+url, "--name", "second", "--header", "X-Key=${SHOP_KEY}", "--yes")
	run("removed second", "upstreams", "remove", "second")
	run("8 tools", "upstreams", "test", "shop")
	run("grpc", "upstreams", "list")
	run("SaveOrder", "search", "save an order")
	run("9007199254740993 ann True | STATE_OPEN 2 b'hi' | 2 True | gRPC NOT_FOUND: there is no order 404", "exec", program("a.py", `
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
`))
	run("9007199254740993 1.2 child 3", "exec", program("b.ts", `
import { Orders_GetOrder, SaveOrder, ListOrders, Version } from "./servers/shop";
const one = await Orders_GetOrder({ id: "9007199254740993" });
const saved = await SaveOrder({ tree: { name: "root", children: [{ name: "child" }] } });
const page = await ListOrders({ count: 3 });
console.log(one.id, await Version({}), saved.tree!.children[0].name, page.messages.length);
`))
}
