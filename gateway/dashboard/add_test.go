package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"sallyport/gateway/addition"
	"sallyport/internal/candidate"
	"sallyport/internal/registry"
	"sallyport/internal/tool"
)

// adder finds servers whose every text is hostile.
type adder struct{ told *[]string }

// hostileEntry is a server of the registry with inputs of each kind.
func hostileEntry() (e registry.Entry) {
	text, shown := quote(evil), quote(strings.NewReplacer("\u202e", "", "\u200b", "", "\x1b", "").Replace(evil)) // values with hidden characters are refused
	content := `{"server": {"name": "io.github.evil/server", "title": ` + text + `, "description": ` + text + `, "version": "1.0.0", "repository": {"url": ` + text + `},
		"packages": [{"registryType": "npm", "identifier": "@evil/server", "version": "1.0.0", "transport": {"type": "stdio"},
			"packageArguments": [{"type": "positional", "valueHint": "folder", "format": "filepath", "isRequired": true, "description": ` + text + `},
				{"type": "positional", "valueHint": "more", "isRepeated": true}],
			"environmentVariables": [{"name": "API_KEY", "isSecret": true, "isRequired": true, "description": ` + text + `, "placeholder": ` + text + `},
				{"name": "MODE", "choices": ["one", ` + shown + `], "default": "one"}, {"name": "PLACE", "default": ` + shown + `}]}]}}`
	if err := json.Unmarshal([]byte(content), &e); err != nil {
		panic(err)
	}
	return e
}

func (a adder) Find(_ context.Context, server string, choice candidate.Choice) (addition.Proposal, error) {
	switch server {
	case "io.github.evil/server":
		found, err := candidate.Of(hostileEntry(), choice)
		if err == nil && a.told != nil && len(*a.told) > 9 {
			found.Version = "1.0.1"
		}
		return addition.Proposal{Candidate: found, Name: "evil-2", Access: []addition.Fact{{Label: "runs", Text: evil}, {Label: "hosts", Text: "none"}}}, err
	case "":
		return addition.Proposal{}, &tool.Error{Kind: tool.Invalid, Message: "no server"}
	}
	return addition.Proposal{}, &tool.Error{Kind: tool.NotFound, Message: evil + " is no well-known server", Hint: "did you mean " + evil + "?"}
}

func (adder) Search(_ context.Context, words string) ([]registry.Entry, bool, error) {
	if words == "none" {
		return nil, false, nil
	}
	return []registry.Entry{hostileEntry(), hostileEntry()}, true, nil
}

func (a adder) Add(_ context.Context, found candidate.Candidate, o addition.Options) (addition.Added, error) {
	if err := found.Check(o.Values); err != nil {
		return addition.Added{}, err
	}
	*a.told = append(*a.told, fmt.Sprintf("add %s %s %v hosts %v bare %t", o.Name, found.Server, o.Values, o.Hosts, o.Bare))
	return addition.Added{Name: o.Name, Existing: o.Name == "crm", Force: map[bool]string{true: evil}[o.Name == "slow"]}, nil
}

// addPagesOf are the pages of this file, with what must be on each.
var addPagesOf = map[string][]string{
	"/ui/add-upstream":                                {"Well-known servers", `?server=github"`, "In the MCP registry"},
	"/ui/add-upstream?words=x":                        {`href="/ui/add-upstream?server=io.github.evil%2fserver"`, "There are more"},
	"/ui/add-upstream?words=none":                     {"No server there has these words"},
	"/ui/add-upstream?server=io.github.evil%2Fserver": {"published by", "the GitHub account evil", "What it runs and may reach", `value="evil-2"`, `type="password"`, "Without a sandbox", "never shown"},
	"/ui/add-upstream?server=nothing":                 {"is no well-known server", "did you mean", "Well-known servers"},
	"/ui/upstreams/crm/test":                          {"It works: 12 tools.", "/ui/catalogue/crm/find", "Open it"},
	"/ui/upstreams/evil/test":                         {"It does not work.", "To do: ", "Try again", "wrote to stderr"},
}

// addForm is the form of the hostile server, with more fields in pairs.
func addForm(t *testing.T, more ...string) url.Values {
	t.Helper()
	page := ask(t, house{}, "op", "/ui/add-upstream?server=io.github.evil%2Fserver", nil).Body.String()
	form := url.Values{"server": {"io.github.evil/server"}, "name": {"mine"}, "seen": {hiddenField(page, "seen")}, "value.0": {"/home/me"}, "value.2": {"hunter2-hunter2"}}
	for i := 0; i < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return form
}

func TestAdd(t *testing.T) {
	for _, test := range []struct {
		who     string
		form    url.Values
		headers []string
		status  int
		next    string
		told    string // what the gateway was asked to do, or what the page says after an error
	}{
		{"op", addForm(t), nil, 303, "/ui/upstreams/mine/test", "add mine io.github.evil/server map[API_KEY:[hunter2-hunter2] folder:[/home/me]] hosts [] bare false"},
		{"op", addForm(t, "value.1", "a\r\n b\n\n", "hosts", " a.example  b.example:1 ", "bare", "yes", "value.2", ""), []string{"Sec-Fetch-Site: same-origin"}, 303, "/ui/upstreams/mine/test", "add mine io.github.evil/server map[folder:[/home/me] more:[a b]] hosts [a.example b.example:1] bare true"},
		{"op", addForm(t, "name", "crm"), nil, 303, "/ui/upstreams/crm", "add crm"},
		{"op", addForm(t, "name", "slow"), nil, 303, "/ui/upstreams", "add slow"},
		{"op", addForm(t, "value.0", "", "value.4", "<i>typed</i>"), nil, 400, "", "these values are required: folder"},
		{"op", addForm(t, "value.3", "three"), nil, 400, "", "MODE is none of the choices"},
		{"op", addForm(t, "seen", "other"), nil, 400, "", "has changed since you looked"},
		{"op", addForm(t, "server", "nothing"), nil, 404, "", "is no well-known server"},
		{"op", addForm(t, "value.2", strings.Repeat("x", 2<<20)), nil, 429, "", "too large"},
		{"op", addForm(t), []string{"Sec-Fetch-Site: cross-site"}, 403, "", "another origin"},
		{"op", addForm(t), []string{"Origin: https://evil.example"}, 403, "", "another origin"},
		{"token", addForm(t), nil, 403, "", "administrator"},
		{"ada", addForm(t), nil, 403, "", "operator"},
		{"", addForm(t), nil, 403, "", "operator"},
	} {
		var told []string
		got := ask(t, house{told: &told}, test.who, "/ui/add-upstream", test.form, test.headers...)
		said := got.Body.String()
		if test.status == 303 {
			said = strings.Join(told, "|")
		}
		if got.Code != test.status || got.Header().Get("Location") != test.next || !strings.Contains(said, test.told) || test.status != 303 && len(told) > 0 {
			t.Errorf("%s %v %v: %d %q, told %q; want %d, %s", test.who, test.form["name"], test.headers, got.Code, got.Header().Get("Location"), told, test.status, test.told)
		}
		if strings.Contains(got.Body.String(), "hunter2") || strings.Contains(fmt.Sprint(got.Header()), "hunter2") {
			t.Errorf("%d: the secret is shown", got.Code)
		}
		checkHarmless(t, got.Body.String())
	}
	again := ask(t, house{told: new([]string)}, "op", "/ui/add-upstream", addForm(t, "value.0", "", "value.4", "<i>typed</i>", "hosts", "x.example")).Body.String()
	if !strings.Contains(again, `value="&lt;i&gt;typed&lt;/i&gt;"`) || !strings.Contains(again, `value="x.example"`) || !strings.Contains(again, `value="mine"`) {
		t.Error("what was typed is lost:", again)
	}
}

// TestAddChanged: a server that the registry describes otherwise than it was shown is not added.
func TestAddChanged(t *testing.T) {
	told := make([]string, 10)
	got := ask(t, house{told: &told}, "op", "/ui/add-upstream", addForm(t))
	if got.Code != 400 || len(told) != 10 || !strings.Contains(got.Body.String(), "has changed since you looked") || !strings.Contains(got.Body.String(), "1.0.1") {
		t.Errorf("%d, told %q: %s", got.Code, told, got.Body)
	}
}

// TestAddLink: only who may add an upstream has a link to the form.
func TestAddLink(t *testing.T) {
	for who, want := range map[string]bool{"op": true, "token": false, "ada": false} {
		if page := ask(t, house{}, who, "/ui/upstreams", nil).Body.String(); strings.Contains(page, `href="/ui/add-upstream"`) != want {
			t.Errorf("%s has a link: %t", who, !want)
		}
	}
}
