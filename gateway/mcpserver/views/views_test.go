package views_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"sallyport/gateway/catalog"
	"sallyport/gateway/mcpserver/views"
	"sallyport/internal/tool"
)

func offer(upstream string, tools ...tool.Tool) catalog.UpstreamOffer {
	for i := range tools {
		tools[i].ID = tool.ID{Upstream: upstream, Name: tools[i].Wire}
	}
	return catalog.UpstreamOffer{ID: upstream, Offer: tool.Offer{Tools: tools}}
}

func visible(name, to string) tool.Tool {
	return tool.Tool{Wire: name, Raw: json.RawMessage(`{"name":"` + name + `","_meta":{"ui":{"visibility":[` + to + `]}}}`)}
}

// What one caller has read is nothing that another one may use, and the first callers are forgotten.
func TestViews(t *testing.T) {
	offers := []catalog.UpstreamOffer{
		offer("a", visible("x", `"app"`), visible("m", `"model"`), tool.Tool{Wire: "same", Raw: json.RawMessage(`{}`)}),
		offer("b", visible("y", `"app"`), visible("same", `"model","app"`)),
	}
	var v views.Views
	may := func(caller, name string) string {
		if id, ok := v.Tool(caller, name, offers); ok {
			return id.String()
		}
		return ""
	}
	if got := may("ann", "x"); got != "" {
		t.Errorf("without a view: %s", got)
	}
	v.Read("ann", "a")
	v.Read("bob", "b")
	for _, of := range []struct{ caller, name, want string }{
		{"ann", "x", "a.x"}, {"ann", "m", ""}, {"ann", "y", ""}, {"ann", "same", "a.same"}, {"ann", "a.x", ""}, {"bob", "x", ""}, {"bob", "same", "b.same"}, {"eve", "x", ""},
	} {
		if got := may(of.caller, of.name); got != of.want {
			t.Errorf("%s calls %s: %q, not %q", of.caller, of.name, got, of.want)
		}
	}
	v.Read("ann", "b")
	if got := may("ann", "same") + may("ann", "y"); got != "b.y" {
		t.Errorf("two upstreams: %s", got)
	}
	for i := range 4095 {
		v.Read(fmt.Sprint(i), "a")
	}
	if got := may("ann", "x") + may("bob", "y"); got != "b.y" {
		t.Errorf("after many callers: %s", got)
	}
}
