package plugin_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sallyport/gateway/plugin"
	"sallyport/internal/testutil"
)

// one is a plugin with the tool "run" and a code.
func one(name, more, code string) files {
	return files{name + "/plugin.yaml": "name: " + name + "\nversion: 1.0.0\n" + more, name + "/main.py": code}
}

// status returns the status of a plugin, and why.
func (h *house) status(name string) (string, string) {
	for _, p := range h.Plugins.List() {
		if p.Name == name {
			return p.Status, p.Reason
		}
	}
	return "", ""
}

// A plugin that does what it must not hurts only itself: the call ends within its time, the error names the plugin, and
// the next call finds it restarted.
func TestHostile(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ code, want string }{
		"hangs":   {"while True: pass", "did not answer within 1s"},
		"exits":   {"os._exit(0)", "it exited"},
		"raises":  {"raise SystemExit(3)", "SystemExit: 3"},
		"floods":  {"b = b'x' * 65536\n    while True: os.write(3, b)", "sent a message of more than 8 MiB"},
		"answers": {"while True: os.write(3, b'{\"id\":99,\"value\":1}\\n')", "sent what nobody asked for"},
		"garbage": {"os.write(3, b'nonsense\\n')", "sent what nobody asked for"},
		"prints":  {"while True: print('x' * 10000)", "did not answer within 1s"},
		"value":   {"return 'x' * (9 << 20)", "sent a message of more than 8 MiB"},
		"nan":     {"return float('nan')", "ValueError"},
		"forks":   {"while True:\n        if os.fork() == 0: time.sleep(1000)", "plugin forks"},
		"memory":  {"x = []\n    while True: x.append(b'x' * (1 << 20))", "plugin memory"},
	}
	plugins := files{}
	for name, c := range cases {
		limit := "1m" // what is not about time must not depend on it
		if strings.Contains(c.want, "within 1s") {
			limit = "1s"
		}
		maps.Copy(plugins, one(name, "tools: [run, ok]\ntimeout: "+limit+"\nmemory: 64MiB\n", "import os, time\ndef run():\n    "+c.code+"\n\ndef ok() -> int:\n    return 1\n"))
	}
	h := open(t, "", plugins)
	var calls sync.WaitGroup
	for name, c := range cases {
		h.await(name + ".run")
		calls.Go(func() {
			h.refused(name+".run", `{}`, c.want)
			testutil.Eventually(t, name+" answers again", startLimit, func() bool { got, _ := h.call(name+".ok", `{}`); return got == "1" })
		})
	}
	calls.Wait()
}

// A plugin cannot reach what it was not granted: network, files, environment, other processes.
func TestIsolation(t *testing.T) {
	t.Setenv("PLUGIN_TEST_CANARY", "canary-of-the-host")
	h := open(t, "", one("spy", "tools: [look, net, fetch_it, take]\n", `
import os, socket, sallyport

def look() -> dict:
    return {"env": dict(os.environ), "root": sorted(os.listdir("/")), "plugin": sorted(os.listdir("/plugin/code")), "uid": os.getuid(), "pids": len([p for p in os.listdir("/proc") if p.isdigit()])}

def net(host: str, port: int):
    socket.create_connection((host, port), 2)

def fetch_it(url: str):
    return sallyport.fetch(url).text

def take(name: str):
    return sallyport.secret(name)
`))
	h.await("spy.look")
	seen, err := h.call("spy.look", `{}`)
	if err != nil || strings.Contains(seen, "canary") || strings.Contains(seen, h.dir) || !strings.Contains(seen, `"plugin":["main.py","plugin.yaml"]`) || !strings.Contains(seen, `"uid":65534`) {
		t.Errorf("it sees %s, %v", seen, err)
	}
	h.refused("spy.net", `{"host":"127.0.0.1","port":22}`, "Error")
	h.refused("spy.fetch_it", `{"url":"https://example.com/"}`, "host example.com is not granted")
	h.refused("spy.fetch_it", `{"url":"http://example.com/"}`, "only https")
	h.refused("spy.take", `{"name":"KEY"}`, "no secret KEY")
}

// A plugin whose manifest names what its code does not have, or whose tools depend on more than its files, is off.
func TestLies(t *testing.T) {
	t.Parallel()
	h := open(t, "", files{
		"liar/plugin.yaml": "name: liar\nversion: 1.0.0\ntools: [run]\nhooks:\n  - before: [shop.price]\n    run: check\n", "liar/main.py": "def run(): pass\n",
		"shop/plugin.yaml": shopManifest, "shop/main.py": shopPython,
	})
	h.await("shop.price")
	h.refused("shop.price", `{"item":"pen"}`, "plugin liar guards shop.price", "plugin.yaml names check, which main.py does not have")
	if status, why := h.status("liar"); status != plugin.Off || !strings.Contains(why, "names check") {
		t.Errorf("it is %s: %s", status, why)
	}
	if _, ok := h.Catalog.Lookup(mustID(t, "liar.run")); ok {
		t.Error("its tool is in the catalog")
	}
}

// A plugin that changed after its review does not run until somebody has reviewed it again; what it guards is refused.
func TestChangedAfterReview(t *testing.T) {
	t.Parallel()
	h := open(t, "", shopWithRules())
	h.await("shop.price")
	h.want("shop.order", `{"item":"book"}`, `{"id":7,"note":"1 book (s)"}`)
	main := filepath.Join(h.dir, "plugins/rules/main.py")
	if err := os.WriteFile(main, append(bytes.Clone([]byte(rulesPython)), "\nlimit = lambda tool, arguments: None\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	h.Plugins.Reload()
	h.refused("shop.order", `{"item":"book","count":11}`, "plugin rules guards shop.order", "main.py changed")
	h.want("shop.price", `{"item":"book"}`, `12.0`) // its hook lets calls pass
	if err := os.RemoveAll(filepath.Dir(main)); err != nil {
		t.Fatal(err)
	}
	h.Plugins.Reload()
	h.refused("shop.order", `{"item":"book"}`, "plugin rules guards shop.order", "no such file")
	write(t, filepath.Join(h.dir, "plugins"), files{"rules/plugin.yaml": rulesManifest, "rules/main.py": strings.ReplaceAll(rulesPython, "> 10", "> 20")})
	h.Plugins.Reload()
	h.refused("shop.order", `{"item":"book"}`, "main.py changed")
	approve(t, h.dir, "rules")
	testutil.Eventually(t, "the approved version", startLimit, func() bool { // by itself
		_, err := h.call("shop.order", `{"item":"book","count":25}`)
		return err != nil && strings.Contains(err.Error(), "25 are more than 10")
	})
}

// A plugin that crashes again and again is off.
func TestOff(t *testing.T) {
	t.Parallel()
	h := open(t, "", one("weak", "tools: [run]\n", "import os\ndef run():\n    os._exit(1)\n"))
	h.await("weak.run")
	testutil.Eventually(t, "off", startLimit, func() bool {
		_, err := h.call("weak.run", `{}`)
		return err != nil && strings.Contains(err.Error(), "plugin weak is off: it exited")
	})
	if status, why := h.status("weak"); status != plugin.Off || why != "it exited" {
		t.Errorf("it is %s: %s", status, why)
	}
}
