package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// skillful is a gateway that keeps skills and can run programs, with two upstreams.
func skillful(t *testing.T, dataDir string) (*gateway.Gateway, map[string]*site) {
	t.Helper()
	sites := map[string]*site{"my-notes": newSite(t, notes), "calc": newSite(t, calc)}
	cfg := withRunsc(t, settings(sites))
	cfg.Skills = config.Skills{Shared: true, Review: true}
	g := open(t, cfg, &gateway.Options{DataDir: dataDir})
	g.Settle(t.Context())
	return g, sites
}

// ran runs a program and returns what a model reads of it.
func ran(t *testing.T, ctx context.Context, g *gateway.Gateway, language, code string) string {
	t.Helper()
	e, err := g.Execute(ctx, gateway.Program{Code: code, Language: language})
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return e.Text()
}

func saved(t *testing.T, ctx context.Context, g *gateway.Gateway, d gateway.SkillDraft) string {
	t.Helper()
	said, err := g.SaveSkill(ctx, d)
	if err != nil {
		t.Fatalf("save %s: %v", d.Name, err)
	}
	return said
}

const greeting = `"""Greets people."""
from servers.calc import add

SIGNS = {"polite": "!"}

def greeting(who: str, times: int = 2) -> str:
    """Greets somebody politely, several times."""
    return " ".join([f"hello {who}{SIGNS['polite']}"] * int(add(a=times, b=0)))

def fails(x):
    return 1 / x
`

func TestSkillsInPython(t *testing.T) {
	g, _ := skillful(t, t.TempDir())
	ctx := t.Context()
	said := saved(t, ctx, g, gateway.SkillDraft{Name: "greeting", Code: greeting})
	if want := "saved greeting, version 1\nfrom skills.greeting import greeting, fails\ngreeting(who: str, times: int = 2) -> str\nfails(x)"; said != want {
		t.Errorf("saved:\n%s", said)
	}
	for _, test := range []struct{ code, want string }{
		{"from skills.greeting import greeting\ngreeting('you')", "hello you! hello you!"},
		{"import skills.greeting as g\ng.__file__", "/tmp/.skills/1/skills/greeting/skill.py"},
		{"from skills import greeting\ngreeting.greeting('x', times=1)", "hello x!"},
		{"from skills.greeting import fails\nfails(0)", "ZeroDivisionError: division by zero\n  line 2: fails(0)\n  skills/greeting/skill.py line 11 in fails: return 1 / x"},
		{"import skills.greting", "ModuleNotFoundError: there is no skill greting; did you mean skills.greeting?"},
		{"from sallyport import list_skills\nlist_skills()", "greeting: Greets somebody politely, several times"},
		{"from sallyport import load_skill\nload_skill('greeting')", "greeting, version 1, python\nGreets somebody"},
		{"from sallyport import save_skill\nprint(save_skill('double', 'def double(x): return 2 * x', 'Doubles.'))\nfrom skills.double import double\ndouble(4)", "=> 8"},
	} {
		if got := ran(t, ctx, g, "python", test.code); !strings.Contains(got, test.want) {
			t.Errorf("%s\ngot  %s\nwant %s", test.code, got, test.want)
		}
	}
	found := search(t, g, gateway.Search{Query: "greet somebody politely"}).Text()
	if want := "from skills.greeting import greeting, fails\n  greeting(who: str, times: int = 2) -> str  # skill"; !strings.Contains(found, want) {
		t.Errorf("search:\n%s", found)
	}
	other := tool.WithPrincipal(ctx, "mallory")
	if got := ran(t, other, g, "python", "import skills.greeting"); !strings.Contains(got, "there is no skill greeting") {
		t.Errorf("another principal: %s", got)
	}
}

var _ = json.RawMessage(nil)
