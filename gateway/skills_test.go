package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/skills"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/skill"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
)

// skillful is a gateway that keeps skills and can run programs, with two upstreams.
func skillful(t *testing.T, dataDir string) (*gateway.Gateway, map[string]*site) {
	t.Helper()
	sites := map[string]*site{"my-notes": newSite(t, notes), "calc": newSite(t, calc)}
	cfg := withRunsc(t, settings(sites))
	cfg.Skills = config.Skills{Shared: true, Review: true}
	g := open(t, cfg, &gateway.Options{DataDir: dataDir})
	g.Catalog.WaitConnected(t.Context())
	return g, sites
}

// mustRun runs a program and returns what a model reads of it.
func mustRun(ctx context.Context, t *testing.T, g *gateway.Gateway, language, code string) string {
	t.Helper()
	e, err := g.Executor.Execute(ctx, execution.Program{Code: code, Language: language})
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return e.Text()
}

func saveSkill(ctx context.Context, t *testing.T, g *gateway.Gateway, d skills.SkillDraft) string {
	t.Helper()
	said, err := g.Skills.SaveSkill(ctx, d)
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

func TestSkills(t *testing.T) {
	g, _ := skillful(t, t.TempDir())
	t.Run("python", func(t *testing.T) { skillsInPython(t, g) })
	t.Run("typescript", func(t *testing.T) { skillsInTypeScript(t, g) })
	t.Run("executions", func(t *testing.T) { skillsOfExecutions(t, g) })
	t.Run("ranking", func(t *testing.T) { skillsBesideTools(t, g) })
}

// skillsBesideTools: a skill stands beside tools where it fits, and pushes none out.
func skillsBesideTools(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	ctx := t.Context()
	saveSkill(ctx, t, g, skills.SkillDraft{Name: "add-notes", Code: "def add_notes(notes: list) -> int:\n    return len(notes)\n", Description: "Add two numbers and create a note of it."})
	for query, first := range map[string]string{
		"add two numbers": "servers.calc", "create a note": "servers.my_notes", "create_note": "servers.my_notes", "add": "servers.calc",
		"add_notes": "skills.add_notes", "greets somebody politely several times": "skills.greeting",
	} {
		found := search(t, g, toolsearch.Request{Query: query})
		if text := found.Text(); !strings.HasPrefix(text, "from "+first) {
			t.Errorf("%s:\n%s", query, text)
		}
	}
	for detail, want := range map[toolsearch.Detail]string{
		toolsearch.Names: "skills.add_notes", toolsearch.Summary: "skills.add_notes: Add two numbers and create a note of it",
		toolsearch.Full: "from skills.add_notes import add_notes\nadd_notes(notes: list) -> int  # skill\nAdd two numbers and create a note of it.\nload_skill(\"add-notes\") shows its code.",
	} {
		if text := search(t, g, toolsearch.Request{Query: "add_notes", Detail: detail, Limit: 1}).Text(); !strings.HasPrefix(text, want) {
			t.Errorf("%s:\n%s", detail, text)
		}
	}
}

func skillsInPython(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	ctx := t.Context()
	said := saveSkill(ctx, t, g, skills.SkillDraft{Name: "greeting", Code: greeting})
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
		if got := mustRun(ctx, t, g, "python", test.code); !strings.Contains(got, test.want) {
			t.Errorf("%s\ngot  %s\nwant %s", test.code, got, test.want)
		}
	}
	found := search(t, g, toolsearch.Request{Query: "greet somebody politely"}).Text()
	if want := "from skills.greeting import greeting, fails\n  greeting(who: str, times: int = 2) -> str  # skill"; !strings.Contains(found, want) {
		t.Errorf("search:\n%s", found)
	}
	if names, ok := g.Skills.SkillFunctions(ctx, "greeting"); !ok || !slices.Equal(names, []string{"greeting", "fails"}) {
		t.Errorf("functions: %v %v", names, ok)
	}
	other := tool.WithPrincipal(ctx, "mallory")
	if _, ok := g.Skills.SkillFunctions(other, "greeting"); ok {
		t.Error("another principal knows the functions")
	}
	if got := mustRun(other, t, g, "python", "import skills.greeting"); !strings.Contains(got, "there is no skill greeting") {
		t.Errorf("another principal: %s", got)
	}
}

const squares = `import { add } from "servers/calc";
import { SIGN } from "./signs";

/** Adds squares. */
export async function squares(numbers: number[], sign: string = "="): Promise<string> {
  let sum = 0;
  for (const n of numbers) sum = Number(await add({ a: sum, b: n * n }));
  return SIGN + sign + sum;
}

export function fails(x: any) {
  return x.y.z;
}
`

func skillsInTypeScript(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	ctx := t.Context()
	_, err := g.Skills.SaveSkill(ctx, skills.SkillDraft{Name: "squares", Code: squares, Language: "typescript"})
	wantError(t, err, tool.Invalid, "skills/squares has no file signs")
	code := strings.Replace(squares, `import { SIGN } from "./signs";`, `const SIGN = "sum";`, 1)
	said := saveSkill(ctx, t, g, skills.SkillDraft{Name: "squares", Code: code, Language: "typescript", Tests: `import test from "node:test";
import assert from "node:assert";
import { squares } from "skills/squares";
test("adds", async () => assert.equal(await squares([1, 2]), "sum=5"));`})
	if want := "saved squares, version 1\nimport { squares, fails } from \"skills/squares\"\nsquares(numbers: number[], sign: string = \"=\"): Promise<string>\nfails(x: any)"; said != want {
		t.Errorf("saved:\n%s", said)
	}
	for _, test := range []struct{ language, code, want string }{
		{"ts", `import { squares } from "skills/squares"; await squares([3, 4])`, "sum=25"},
		{"ts", `const { squares } = await import("skills/squares"); await squares([3])`, "sum=9"},
		{"ts", "import { fails } from \"skills/squares\";\nfails({})", "TypeError: Cannot read properties of undefined (reading 'z')\n  line 2: fails({})\n  skills/squares/skill.ts line 12 in fails: return x.y.z;"},
		{"ts", `import { square } from "skills/squares"; square()`, "ImportError: skills/squares has no square\n  line 1: import { square } from \"skills/squares\"; square()\nhint: did you mean squares?"},
		{"ts", `import { x } from "skills/squaers"; x()`, "there is no skill squaers\n  line 1: import { x } from \"skills/squaers\"; x()\nhint: did you mean skills.squares?"},
		{"ts", `import { list_skills, load_skill, save_skill } from "sallyport"; console.log(await save_skill("one", { code: "export const one = (): number => 1", description: "One." })); console.log(await list_skills("squares")); (await load_skill("squares", 1)).slice(0, 33)`,
			"saved one, version 1\nimport { one } from \"skills/one\"\none(): number\nsquares: Adds squares\n=> squares, version 1, typescript\nAd"},
		{"python", `import skills.squares`, "ImportError: skill squares is in typescript; import it from a program in typescript"},
	} {
		if got := mustRun(ctx, t, g, test.language, test.code); !strings.Contains(got, test.want) {
			t.Errorf("%s\ngot  %s\nwant %s", test.code, got, test.want)
		}
	}
	_, err = g.Skills.SaveSkill(ctx, skills.SkillDraft{Name: "squares", Code: strings.ReplaceAll(code, "n * n", "n")})
	wantError(t, err, tool.Failed, "not saved: its tests fail", "sum=3")
	if text, err := g.Skills.LoadSkill(ctx, "squares", 0); err != nil || !strings.HasPrefix(text, "squares, version 1, typescript\n") {
		t.Errorf("%v %s", err, text)
	}
}

func skillsOfExecutions(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	ctx := t.Context()
	const program = "from servers.calc import add\nimport json\n\ntext = \"\"\"\n  two\nlines\"\"\"\na = 20\ndef twice(x):\n    return x * 2\nprint(text)\nint(add(a=a, b=22)) + twice(20)\n"
	mustRun(ctx, t, g, "python", program)
	said := saveSkill(ctx, t, g, skills.SkillDraft{Name: "add-up", From: "last", Params: map[string]json.RawMessage{"a": json.RawMessage("20"), "b": json.RawMessage("22")}, Description: "Adds up."})
	if want := "saved add-up, version 1\nfrom skills.add_up import add_up\nadd_up(a: int = 20, b: int = 22)\na replaces 20 2 times\nb replaces 22 once"; said != want {
		t.Errorf("saved:\n%s", said)
	}
	if got, want := mustRun(ctx, t, g, "python", "from skills.add_up import add_up\nadd_up(a=1)"), "\n  two\nlines\n=> 25"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	mustRun(ctx, t, g, "typescript", "import { add } from \"servers/calc\";\nconst base = 5;\nconst sum = await add({ a: base, b: 7 });\nconsole.log(`${sum}\n of 7`);\nNumber(sum) + 7")
	said = saveSkill(ctx, t, g, skills.SkillDraft{Name: "add-ts", From: "last", Params: map[string]json.RawMessage{"base": json.RawMessage("5"), "n": json.RawMessage("7")}, Description: "Adds."})
	if want := "saved add-ts, version 1\nimport { add_ts } from \"skills/add_ts\"\nadd_ts({ base = 5, n = 7 }: { base?: number; n?: number } = {})\nbase replaces 5 once\nn replaces 7 2 times"; said != want {
		t.Errorf("saved:\n%s", said)
	}
	if got, want := mustRun(ctx, t, g, "typescript", "import { add_ts } from \"skills/add-ts\";\nawait add_ts({ n: 10 })"), "15\n of 7\n=> 25"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, err := g.Skills.SaveSkill(ctx, skills.SkillDraft{Name: "x", From: "last", Params: map[string]json.RawMessage{"n": json.RawMessage("8")}})
	wantError(t, err, tool.Invalid, "the program has no literal 8, the value of n")
	_, err = g.Skills.SaveSkill(tool.WithPrincipal(ctx, "mallory"), skills.SkillDraft{Name: "x", From: "last"})
	wantError(t, err, tool.NotFound, "no successful execution in this session")
	mustRun(ctx, t, g, "python", "1/0")
}

// TestSkillsAmongThemselves: a skill imports others, its own files and what lies beside them; a circle is an
// error that says so; a session takes up a new version with its next program.
func TestSkillsAmongThemselves(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "skills", workspace.Folder(""))
	for at, text := range map[string]string{
		"by-hand/SKILL.md":    "---\nname: by-hand\ndescription: Counts the words of a poem.\n---\nRead poem.txt.\n",
		"by-hand/skill.py":    "from pathlib import Path\nfrom .helper import count\nfrom skills.by_hand.sub.deep import NAME\nfrom skills.plain import plain\n\ndef words():\n    return [NAME, plain(), count((Path(__file__).parent / 'poem.txt').read_text())]\n",
		"by-hand/helper.py":   "def count(text):\n    return len(text.split())\n",
		"by-hand/sub/deep.py": "NAME = 'deep'\n",
		"by-hand/poem.txt":    "one two three\n",
		"ring-a/SKILL.md":     "---\ndescription: A ring.\n---\n",
		"ring-a/skill.py":     "from skills.ring_b import b\n\na = 1\n",
		"ring-b/SKILL.md":     "---\ndescription: A ring.\n---\n",
		"ring-b/skill.py":     "from skills.ring_a import a\n\nb = 1\n",
		"only-words/SKILL.md": "---\ndescription: How to behave.\n---\nBe kind.\n",
		"ts-hand/SKILL.md":    "---\ndescription: In two files.\n---\n",
		"ts-hand/skill.ts":    "import { half } from \"./lib/half\";\nimport data from \"./data.json\";\nimport { ts_other } from \"skills/ts-other\";\nexport const whole = (): string => half + data.rest + ts_other();\n",
		"ts-hand/lib/half.ts": "export const half: string = \"ha\";\n",
		"ts-hand/data.json":   `{"rest": "lf"}`,
		"ts-other/SKILL.md":   "---\ndescription: Another.\n---\n",
		"ts-other/skill.ts":   "export function ts_other() { return \"!\" }\n",
		"ts-out/SKILL.md":     "---\ndescription: Leads out.\n---\n",
		"ts-out/skill.ts":     "import { x } from \"../ts-other/skill\";\nexport { x };\n",
		"broken/SKILL.md":     "no front matter\n",
		"broken/skill.py":     "x = 1\n",
	} {
		at = filepath.Join(home, at)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	g, _ := skillful(t, dir)
	ctx := t.Context()
	saveSkill(ctx, t, g, skills.SkillDraft{Name: "plain", Code: "def plain():\n    return 1\n", Description: "One."})
	for _, test := range []struct{ language, code, want string }{
		{"python", "from skills.by_hand import words\nwords()", `["deep",1,3]`},
		{"python", "import skills.ring_a", "ImportError: cannot import name 'a' from partially initialized module 'skills.ring_a' (most likely due to a circular import)"},
		{"python", "import skills.only_words", "ImportError: skill only-words has no code, only instructions; read them: load_skill(\"only-words\")"},
		{"python", "import skills.broken", "skill broken cannot be read: SKILL.md must begin"},
		{"python", "from sallyport import load_skill\nprint(load_skill('only-words'))", "How to behave.\n---\nBe kind."},
		{"ts", `import { whole } from "skills/ts-hand"; whole()`, "half!"},
		{"ts", `import { x } from "skills/ts-out"; x()`, `ImportError: cannot import "../ts-other/skill"`},
		{"python", "from sallyport import list_skills\nlist_skills()", "broken: SKILL.md must begin"},
	} {
		if got := mustRun(ctx, t, g, test.language, test.code); !strings.Contains(got, test.want) {
			t.Errorf("%s\ngot  %s\nwant %s", test.code, got, test.want)
		}
	}
	if found := search(t, g, toolsearch.Request{Query: "count the words of a poem"}).Text(); !strings.Contains(found, "from skills.by_hand import words\n  words()  # skill") {
		t.Errorf("made by hand: %s", found)
	}
	in := func(code string) string {
		e, err := g.Executor.Execute(ctx, execution.Program{Code: code, Session: "s"})
		if err != nil {
			t.Fatal(err)
		}
		return e.Text()
	}
	first := in("from skills.plain import plain\nplain()")
	saveSkill(ctx, t, g, skills.SkillDraft{Name: "plain", Code: "def plain():\n    return 2\n"})
	if second := in("from skills.plain import plain\nplain()"); first != "1" || second != "2" {
		t.Errorf("%s, then %s", first, second)
	}
}

// TestSkillsOfOthers tries with every verb to come by the skills of another principal.
func TestSkillsOfOthers(t *testing.T) {
	dir := t.TempDir()
	g, _ := skillful(t, dir)
	ann, bob := tool.WithPrincipal(t.Context(), "ann"), tool.WithPrincipal(t.Context(), "bob")
	const secret = "xylophone"
	saveSkill(ann, t, g, skills.SkillDraft{Name: secret, Code: "def xylophone(): return 'xylophone music'\n", Description: "Plays " + secret + "."})
	saveSkill(ann, t, g, skills.SkillDraft{Name: "waits", Code: "def waits(): return 'xylophone'\n", Description: "Plays xylophone.", Scope: "shared"})
	mustRun(ann, t, g, "python", "'xylophone'")
	for name, try := range map[string]func() (string, error){
		"load": func() (string, error) { return g.Skills.LoadSkill(bob, "xylophone", 0) },
		"path": func() (string, error) { return g.Skills.LoadSkill(bob, "../ann/xylophone", 0) },
		"list": func() (string, error) { return g.Skills.ListSkills(bob, "") },
		"find": func() (string, error) { return g.Skills.ListSkills(bob, "plays music") },
		"from": func() (string, error) {
			return g.Skills.SaveSkill(bob, skills.SkillDraft{Name: "mine", From: "last", Description: "d"})
		},
		"more": func() (string, error) {
			return g.Skills.SaveSkill(bob, skills.SkillDraft{Name: "xylophone", Tests: "assert True"})
		},
		"search": func() (string, error) {
			found, err := g.Searcher.Search(bob, toolsearch.Request{Query: "plays music", Upstream: "skills"})
			return found.Text(), err
		},
		"beside": func() (string, error) {
			found, err := g.Searcher.Search(bob, toolsearch.Request{Query: "plays music instrument"})
			return found.Text(), err
		},
		"program": func() (string, error) {
			return mustRun(bob, t, g, "python", "from sallyport import list_skills, search_tools, describe, load_skill, ToolError\nfrom sallyport import call\nprint(list_skills(), search_tools('plays music'))\nfor name in ('xylo'+'phone', 'waits'):\n  for f in (load_skill, lambda n: describe('skills.' + n), lambda n: call('sallyport.import_skill', {'name': n, 'language': 'python'})):\n    try: print(f(name))\n    except ToolError as e: print(e.code)"), nil
		},
		"typescript": func() (string, error) { return mustRun(bob, t, g, "ts", `import * as x from "skills/waits"; x`), nil },
	} {
		text, err := try()
		text, _, _ = strings.Cut(text, "\nnote: ") // it repeats the name that the program asked for
		if strings.Contains(text, secret) || err != nil && (strings.Contains(err.Error(), "music") || strings.Contains(err.Error(), "did you mean")) {
			t.Errorf("%s: %s %v", name, text, err)
		}
	}
	// What is approved runs with the rights of whoever calls it: it sees its caller's workspace and skills.
	saveSkill(ann, t, g, skills.SkillDraft{Name: "reader", Code: "def reader():\n    import skills.mine\n    return open('/workspace/mine.txt').read() + skills.mine.mine()\n", Description: "Reads what is in the workspace.", Scope: "shared"})
	store := skill.New(filepath.Join(dir, "skills"))
	if _, err := store.Approve("reader", ""); err != nil {
		t.Fatal(err)
	}
	for who, ctx := range map[string]context.Context{"ann": ann, "bob": bob} {
		saveSkill(ctx, t, g, skills.SkillDraft{Name: "mine", Code: "def mine(): return ' and " + who + "'\n", Description: "Mine."})
		if got := mustRun(ctx, t, g, "python", "open('/workspace/mine.txt', 'w').write('"+who+"')\nfrom skills.reader import reader\nreader()"); got != who+" and "+who {
			t.Errorf("%s: %s", who, got)
		}
	}
	if text, err := g.Skills.ListSkills(bob, ""); err != nil || !strings.Contains(text, "reader (shared): Reads what is in the workspace") || strings.Contains(text, "waits") {
		t.Errorf("%s %v", text, err)
	}
}

// TestSkillFlags: a skill says when a tool that it calls is not what it was.
func TestSkillFlags(t *testing.T) {
	g, sites := skillful(t, t.TempDir())
	ctx := t.Context()
	saveSkill(ctx, t, g, skills.SkillDraft{Name: "greeting", Code: greeting})
	flagged := func() string {
		text, err := g.Skills.LoadSkill(ctx, "greeting", 0)
		if err != nil {
			t.Fatal(err)
		}
		return text + search(t, g, toolsearch.Request{Query: "greets somebody politely"}).Text()
	}
	if text := flagged(); strings.Contains(text, "since it was saved") {
		t.Errorf("flagged at once: %s", text)
	}
	sites["calc"].tool("add", "Adds two numbers, otherwise.", "", echo)
	waitFor(t, "the change", func() bool { return strings.Contains(flagged(), "warning: calc.add changed since it was saved") })
	if text := flagged(); strings.Count(text, "calc.add changed since it was saved") != 2 {
		t.Errorf("not in both: %s", text)
	}
	sites["calc"].RemoveTools("add")
	waitFor(t, "the end", func() bool { return strings.Contains(flagged(), "calc.add no longer exists") })
}

// waitFor waits until the gateway has heard of something.
func waitFor(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !happened(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s was not heard of", what)
		}
	}
}
