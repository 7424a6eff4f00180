package dashboard_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"sallyport/internal/tool"
)

// disabled are upstreams that the settings turn off.
func disabled() []string { return []string{"old", evil} }

// TestUpstreamEdit: the settings of an upstream are checked, then saved.
func TestUpstreamEdit(t *testing.T) {
	var told []string
	edit := func(who, do, text, checked string, headers ...string) answer {
		return ask(t, house{told: &told}, who, "/ui/upstreams/crm/edit", url.Values{"do": {do}, "text": {text}, "version": {"v1"}, "checked": {checked}}, headers...)
	}
	if bad := edit("op", "check", "crm: bad", ""); bad.Code != 400 || !strings.Contains(bad.Body.String(), "Line 2: ") || strings.Contains(bad.Body.String(), `value="save"`) {
		t.Errorf("%d %s", bad.Code, bad.Body)
	}
	checked := edit("op", "check", "crm: {}", "")
	digest := hiddenField(checked.Body.String(), "checked")
	if checked.Code != 200 || digest == "" || len(told) > 0 {
		t.Errorf("%d %q, told %q", checked.Code, digest, told)
	}
	if other := edit("op", "save", "crm: {a: b}", digest); other.Code != 200 || len(told) > 0 {
		t.Errorf("another text than was checked: %d, told %q", other.Code, told)
	}
	for _, who := range []string{"token", "ada", "reader", ""} {
		if got := edit(who, "save", "crm: {}", digest); got.Code != 403 {
			t.Errorf("%q: %d", who, got.Code)
		}
	}
	if got := edit("op", "save", "crm: {}", digest, "Sec-Fetch-Site: cross-site"); got.Code != 403 || len(told) > 0 {
		t.Errorf("from another site: %d, told %q", got.Code, told)
	}
	if got := edit("op", "save", "crm: {}", digest); got.Code != 303 || strings.Join(told, "|") != "save upstreams.crm v1 crm: {}" {
		t.Errorf("%d, told %q", got.Code, told)
	}
}

// TestUpstreamSwitch: an upstream is turned off and on by those who may change the settings, and others have no buttons for it.
func TestUpstreamSwitch(t *testing.T) {
	var told []string
	turn := func(who, id, do string, headers ...string) int {
		return ask(t, house{told: &told}, who, "/ui/upstreams/"+id+"/switch", url.Values{"do": {do}}, headers...).Code
	}
	for _, who := range []string{"token", "ada", "reader", ""} {
		if got := turn(who, "crm", "disable"); got != 403 {
			t.Errorf("%q: %d", who, got)
		}
	}
	if got := turn("op", "crm", "disable", "Origin: https://evil.example"); got != 403 || len(told) > 0 {
		t.Errorf("from another site: %d, told %q", got, told)
	}
	if got := turn("op", "crm", "neither"); got != 400 || len(told) > 0 {
		t.Errorf("neither on nor off: %d, told %q", got, told)
	}
	if on, off := turn("op", "old", "enable"), turn("op", "crm", "disable"); on != 303 || off != 303 || strings.Join(told, "|") != "enable old|disable crm" {
		t.Errorf("%d, %d, told %q", on, off, told)
	}
	for _, path := range []string{"/ui/upstreams", "/ui/upstreams/evil"} {
		if page := ask(t, house{}, "token", path, nil).Body.String(); strings.Contains(page, "/edit") || strings.Contains(page, "/switch") {
			t.Errorf("%s shows a token what it may not do", path)
		}
	}
}

func (h house) Restart(_ context.Context, id string) error {
	switch id {
	case "crm":
		*h.told = append(*h.told, "restart "+id)
		return nil
	case "evil":
		return &tool.Error{Kind: tool.Upstream, Message: "cannot connect to upstream evil: \u202e<b>exited</b>"}
	}
	return &tool.Error{Kind: tool.NotFound, Message: "there is no upstream " + id}
}

// TestUpstreamRestart: operators restart an upstream, and read what happened on its page; others have no button for it.
func TestUpstreamRestart(t *testing.T) {
	var told []string
	restart := func(who, id string, headers ...string) answer {
		return ask(t, house{told: &told}, who, "/ui/upstreams/"+id+"/restart", url.Values{}, headers...)
	}
	for _, who := range []string{"ada", "reader", ""} {
		if got := restart(who, "crm"); got.Code != 403 {
			t.Errorf("%q: %d", who, got.Code)
		}
	}
	if got := restart("op", "crm", "Origin: https://evil.example"); got.Code != 403 || len(told) > 0 {
		t.Errorf("from another site: %d, told %q", got.Code, told)
	}
	if got := restart("op", "crm"); got.Code != 303 || got.Header().Get("Location") != "/ui/upstreams/crm" || strings.Join(told, "|") != "restart crm" {
		t.Errorf("%d, %q, told %q", got.Code, got.Header(), told)
	}
	if got := restart("op", "none"); got.Code != 404 {
		t.Errorf("unknown: %d", got.Code)
	}
	if got := restart("op", "evil"); got.Code != 303 || got.Header().Get("Location") != "/ui/upstreams/evil" {
		t.Errorf("not connected: %d, %q", got.Code, got.Header())
	}
	for who, want := range map[string]bool{"op": true, "token": true, "ada": false} {
		if page := ask(t, house{}, who, "/ui/upstreams/evil", nil).Body.String(); strings.Contains(page, `action="/ui/upstreams/evil/restart"`) != want {
			t.Errorf("%q has a button: %t", who, !want)
		}
	}
}
