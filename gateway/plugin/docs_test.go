package plugin_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sallyport/gateway/plugin"
	"sallyport/gateway/plugin/folder"
	"sallyport/internal/testutil"
	"sallyport/sandbox"
)

// documented returns the plugins of the page about plugins: the blocks of a section are the files of one.
func documented(t *testing.T) (plugins files, names []string) {
	t.Helper()
	plugins = files{}
	name := ""
	for _, e := range testutil.Examples(t, "docs/how-to/plugins.md") {
		switch {
		case e.Language == "yaml" && strings.Contains(e.Text, "\nversion: "):
			first, _, _ := strings.Cut(e.Text, "\n")
			name = strings.TrimPrefix(first, "name: ")
			names = append(names, name)
			plugins[name+"/plugin.yaml"] = e.Text
		case e.Language == "python":
			plugins[name+"/main.py"] = e.Text
		case e.Language == "typescript":
			plugins[name+"/main.ts"] = e.Text
		case e.Language == "yaml" && strings.HasPrefix(e.Text, "- run: "):
			plugins[name+"/tests.yaml"] = e.Text
		}
	}
	return plugins, names
}

// TestDocumentedPlugins runs the tests of each plugin of the page, and has all of them in one gateway.
func TestDocumentedPlugins(t *testing.T) {
	t.Parallel()
	plugins, names := documented(t)
	if len(names) != 7 {
		t.Errorf("the page has the plugins %v, not 7", names)
	}
	plugins["shop/plugin.yaml"], plugins["shop/main.py"] = "name: shop\nversion: 1.0.0\ntools: [order]\n", "def order(item: str, count: int = 1, note: str = '') -> str:\n    return f'{count} {item} {note}'\n"
	h := open(t, "", plugins)
	h.await("prices.price", "shop.order")
	h.want("prices.price", `{"item":"book"}`, `12.0`)
	h.want("shop.order", `{"item":"pen","count":2,"note":" now "}`, `"2 pen now"`)
	h.refused("shop.order", `{"item":"pen","count":101}`, "plugin rules refuses shop.order: at most 100 pieces")
	if got, err := h.Plugins.Step(context.Background(), "maths", "mean", json.RawMessage(`{"values":[1,2,6]}`)); err != nil || string(got) != "3" {
		t.Errorf("step: %s, %v", got, err)
	}
	for _, name := range names {
		if status, why := h.status(name); (status == plugin.Ready) == (name == "rates") {
			t.Errorf("plugin %s is %s: %s", name, status, why)
		}
		h.runTests(name, name != "rates")
	}
}

// runTests runs the tests of a plugin; some says that it has some.
func (h *house) runTests(name string, some bool) {
	h.t.Helper()
	p, err := folder.Read(filepath.Join(h.dir, "plugins", name))
	if err != nil {
		h.t.Fatal(err)
	}
	tests, err := p.Tests()
	if err != nil || (len(tests) > 0) != some {
		h.t.Fatalf("plugin %s has %d tests, %v", name, len(tests), err)
	}
	if !some {
		return
	}
	trial := plugin.NewTrial(load(h.t, h.dir), p, func(s sandbox.Service) (plugin.Conn, error) {
		s.ID = "trial-" + name
		return h.Sandboxes.Serve(s)
	}, "")
	defer trial.Close()
	for _, one := range tests {
		value, err := trial.Call(context.Background(), one.Run, one.With)
		switch {
		case err != nil && (one.Error == "" || !strings.Contains(err.Error(), one.Error)), err == nil && one.Error != "":
			h.t.Errorf("%s:%d: %s, %v", name, one.Line, value, err)
		case err == nil && one.Want != nil && !sameJSON(value, one.Want):
			h.t.Errorf("%s:%d: %s, not %s", name, one.Line, value, one.Want)
		}
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
