package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/skills"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/skill"
	"sallyport/internal/tool"
)

// team is a gateway with two people of a provider, alice in the group finance and bob in dev.
type team struct {
	*gateway.Gateway
	directory  *access.Directory
	store      *skill.Store
	dir        string          // of the skills
	alice, bob context.Context //nolint:containedctx // the callers of a test
}

func newTeam(t *testing.T, review bool) *team {
	t.Helper()
	dir, directory := t.TempDir(), access.NewDirectory()
	cfg := withRunsc(t, settings(nil))
	cfg.Skills = config.Skills{Shared: true, Review: review}
	person := func(name string) context.Context {
		return tool.WithRemote(tool.WithPrincipal(t.Context(), "oauth:"+name))
	}
	tm := &team{open(t, cfg, &gateway.Options{DataDir: dir, Directory: directory}), directory, skill.New(filepath.Join(dir, "skills")), filepath.Join(dir, "skills"), person("alice"), person("bob")}
	tm.joins(tm.alice, "finance", "all")
	tm.joins(tm.bob, "dev", "all")
	return tm
}

// joins makes a principal a member of these groups only.
func (tm *team) joins(who context.Context, groups ...string) {
	tm.directory.Set(tool.Principal(who), groups, time.Now())
}

// says runs a program and returns what a model reads of it.
func (tm *team) says(who context.Context, t *testing.T, language, code string) string {
	t.Helper()
	return mustRun(who, t, tm.Gateway, language, code)
}

// approve shares what waits.
func (tm *team) approve(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := tm.store.Approve(name, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// restricted saves a skill of the group finance in each language, by programs, and shares them.
func (tm *team) restricted(t *testing.T) {
	t.Helper()
	tm.says(tm.alice, t, "python", `from sallyport import save_skill
for n in (1, 2):
    print(save_skill("payroll", f"def payroll(): return 'wages {n}'", "Pays ultramarine wages.", scope="shared", groups=["finance"]))`)
	tm.says(tm.alice, t, "ts", `import { save_skill } from "sallyport";
await save_skill("ledgers", { code: "export function ledgers(): string { return 'turquoise books' }", description: "Keeps turquoise books.", scope: "shared", groups: ["audit", "finance"] })`)
	tm.approve(t, "payroll", "ledgers")
}

// TestSkillsOfGroups: members use a skill of their group by every door.
func TestSkillsOfGroups(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, true)
	tm.restricted(t)
	carol := tool.WithRemote(tool.WithPrincipal(t.Context(), "oauth:carol"))
	tm.joins(carol, "finance")
	for _, who := range []context.Context{tm.alice, carol, t.Context()} {
		if got := tm.says(who, t, "python", "from skills.payroll import payroll\npayroll()"); got != "wages 2" {
			t.Errorf("python: %s", got)
		}
		if got := tm.says(who, t, "ts", "import { ledgers } from \"skills/ledgers\";\nexport default ledgers()"); got != "turquoise books" {
			t.Errorf("typescript: %s", got)
		}
		text, err := tm.Skills.LoadSkill(who, "payroll", 0)
		if err != nil || !strings.Contains(text, ", for the groups finance\n") {
			t.Errorf("%s %v", text, err)
		}
	}
	if found, err := tm.Searcher.Search(carol, toolsearch.Request{Query: "pays ultramarine wages"}); err != nil || !strings.Contains(found.Text(), "skills.payroll") {
		t.Errorf("%s %v", found.Text(), err)
	}
	tm.operatorSees(t)
	// A version of a member who does not name the groups has those of the shared skill.
	saveSkill(carol, t, tm.Gateway, skills.SkillDraft{Name: "payroll", Code: "def payroll(): return 'wages 3'\n", Description: "Pays wages.", Scope: "shared"})
	tm.approve(t, "payroll")
	if one, err := tm.store.LoadShared("payroll", 0); err != nil || strings.Join(one.Groups, " ") != "finance" || !strings.Contains(one.Code(), "wages 3") {
		t.Errorf("%v %v", one.Groups, err)
	}
}

// operatorSees checks that a remote operator reads all in the API, and that its programs have the groups of its principal.
func (tm *team) operatorSees(t *testing.T) {
	t.Helper()
	ops := tool.WithOperator(tool.WithRemote(tool.WithPrincipal(t.Context(), "oauth:olga")), "oauth:olga")
	tm.joins(ops, "ops")
	list, err := tm.Skills.SkillList(ops)
	if err != nil || len(list) != 2 || list[1].Name != "payroll" || strings.Join(list[1].Groups, " ") != "finance" {
		t.Errorf("%+v %v", list, err)
	}
	if one, err := tm.Skills.SkillOf(ops, "payroll", 0); err != nil || !strings.Contains(one.Code, "wages 2") {
		t.Errorf("%+v %v", one, err)
	}
	if got := tm.says(ops, t, "python", "from skills.payroll import payroll"); !strings.Contains(got, "there is no skill payroll") {
		t.Errorf("a program of the operator: %s", got)
	}
}

// guesses are what somebody tries who guesses the name of a skill.
func (tm *team) guesses(t *testing.T) map[string]func(who context.Context, name string) string {
	t.Helper()
	said := func(value any, err error) string {
		text, _ := json.Marshal(value)
		if e, ok := errors.AsType[*tool.Error](err); ok {
			text = append(text, string(e.Kind)+e.Hint...)
		}
		return fmt.Sprint(string(text), err)
	}
	runs := func(language, code string) func(context.Context, string) string {
		return func(who context.Context, name string) string {
			return tm.says(who, t, language, strings.ReplaceAll(code, "NAME", name))
		}
	}
	read := func(version int) func(context.Context, string) string {
		return func(who context.Context, name string) string {
			text, err := tm.Skills.LoadSkill(who, name, version)
			detail, again := tm.Skills.SkillOf(who, name, version)
			return said(text, err) + said(detail, again)
		}
	}
	return map[string]func(context.Context, string) string{
		"import":      runs("python", "from skills.NAME import NAME"),
		"module":      runs("python", "import skills.NAME as m; dir(m)"),
		"dynamic":     runs("python", "import importlib\nimportlib.import_module('skills.NAME')"),
		"package":     runs("python", "import skills\nprint([n for n in dir(skills) if not n.startswith('_')])\nskills.NAME"),
		"typescript":  runs("ts", `import { NAME } from "skills/NAME"; NAME()`),
		"file":        runs("ts", `import * as x from "skills/NAME/skill.ts"; x`),
		"builtins":    runs("python", builtinGuesses),
		"by the rest": runs("ts", `import { load_skill, list_skills, describe } from "sallyport"; for (const f of [() => load_skill("NAME"), () => load_skill("NAME", 1), () => list_skills("NAME ultramarine turquoise"), () => describe("skills.NAME")]) try { console.log(await f()) } catch (e) { console.log(e.code, e.message, e.hint) }`),
		"read":        read(0), "an old version": read(1), "a version that is not there": read(7),
		"language": func(who context.Context, name string) string { return said(tm.Skills.SkillLanguage(who, name)) },
		"functions": func(who context.Context, name string) string {
			names, ok := tm.Skills.SkillFunctions(who, name)
			return fmt.Sprint(names, ok)
		},
		"lists": func(who context.Context, name string) string {
			list, err := tm.Skills.SkillList(who)
			return said(list, err) + said(tm.Skills.ListSkills(who, "")) + said(tm.Skills.ListSkills(who, name+" ultramarine turquoise"))
		},
		"search": func(who context.Context, name string) string {
			all, err := tm.Searcher.Search(who, toolsearch.Request{Query: name + " pays ultramarine wages, keeps turquoise books"})
			only, again := tm.Searcher.Search(who, toolsearch.Request{Query: "ultramarine turquoise", Upstream: "skills"})
			return said(all.Text(), err) + said(only.Text(), again)
		},
		"pending": func(who context.Context, name string) string { return said(tm.Skills.PendingSkill(who, name)) },
		"save": func(who context.Context, name string) string {
			text, err := tm.Skills.SaveSkill(who, skills.SkillDraft{Name: name, Tests: "assert True"}) // a version of what is there
			return said(text, err)
		},
	}
}

const builtinGuesses = `from sallyport import call, list_skills, load_skill, describe, search_tools, ToolError
for f in (lambda: call("sallyport.import_skill", {"name": "NAME", "language": "python"}), lambda: call("sallyport.skill_infos", {}), lambda: load_skill("skills.NAME"),
          lambda: load_skill("NAME", 2), lambda: describe("skills.NAME"), lambda: list_skills("ultramarine"), lambda: search_tools("skills.NAME turquoise", upstream="skills")):
    try: print(f())
    except ToolError as e: print(e.code, e, e.hint)`

// TestSkillsHidden: whatever a principal tries that is in none of the groups, a skill answers as a name that nobody uses.
func TestSkillsHidden(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, true)
	tm.says(tm.bob, t, "python", `from sallyport import save_skill
save_skill("payday", "def payday(): return 1", "Says a day.")`) // a name that is suggested for both
	before := tm.guessAll(tm.bob, t)
	tm.restricted(t)
	same := func(when string, who context.Context) {
		for attack, got := range tm.guessAll(who, t) {
			if want := before[attack]; got != want {
				t.Errorf("%s, %s:\n got %s\nwant %s", when, attack, got, want)
			}
		}
	}
	same("shared", tm.bob)
	tm.directory.Set(tool.Principal(tm.bob), nil, time.Now())
	same("without groups", tm.bob)
	if err := os.WriteFile(filepath.Join(tm.dir, "+shared", "payroll", "SKILL.md"), []byte("---\ndescription: ultramarine\ngroups: {}\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	same("unreadable", tm.bob)
	stranger := tool.WithRemote(t.Context()) // of a gateway without tokens
	if got := tm.says(stranger, t, "ts", `import { ledgers } from "skills/ledgers"; ledgers()`); !strings.Contains(got, "there is no skill ledgers") {
		t.Errorf("a caller without a name: %s", got)
	}
}

// guessAll returns the answers to all guesses of two names, one in each language, without the name that was asked for.
func (tm *team) guessAll(who context.Context, t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for attack, try := range tm.guesses(t) {
		for _, name := range []string{"payroll", "ledgers"} {
			all[attack+" "+name] = executionID.ReplaceAllString(try(who, name), "ID")
		}
	}
	return all
}

// executionID matches the ids of executions.
var executionID = regexp.MustCompile(`\bx[0-9A-Za-z_-]{10,}\b`)

// TestSkillsOfGroupsKept: only members change a skill, and what decides is who is a member now, and the current version.
func TestSkillsOfGroupsKept(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, false)
	tm.narrowed(t)
	save := func(who context.Context, scope string, groups ...string) error {
		d := skills.SkillDraft{Name: "payroll", Code: "def payroll(): return 'new'\n", Description: "New.", Scope: scope}
		if len(groups) > 0 {
			d.Groups = &groups
		}
		_, err := tm.Skills.SaveSkill(who, d)
		return err
	}
	wantError(t, save(tm.bob, "shared"), tool.Denied, "the name payroll is taken")
	wantError(t, save(tm.bob, "shared", "dev"), tool.Denied, "the name payroll is taken")
	if len(tm.store.Names(tool.Principal(tm.bob))) != 0 {
		t.Error("a refused skill was saved")
	}
	wantError(t, save(tm.alice, "shared", "dev", "ops"), tool.Denied, "you are in none of these groups: dev, ops")
	wantError(t, save(tm.alice, "shared", " "), tool.Invalid, "cannot name a group")
	if one, err := tm.store.LoadShared("payroll", 0); err != nil || one.Version != 2 || one.Author != "oauth:alice" {
		t.Errorf("%+v %v", one.Front, err)
	}
	_, err := tm.Skills.LoadSkill(tm.bob, "payroll", 1)
	wantError(t, err, tool.NotFound, "there is no skill payroll") // version 1 was for everybody

	// Bob has a skill of that name for himself, and alice sees none of it.
	if err := save(tm.bob, ""); err != nil {
		t.Fatal(err)
	}
	for who, want := range map[context.Context]string{tm.bob: "new", tm.alice: "wages"} {
		if got := tm.says(who, t, "python", "from skills.payroll import payroll\npayroll()"); got != want {
			t.Errorf("%s: %s", tool.Principal(who), got)
		}
	}

	// Alice leaves the group: her own skill and the shared one are gone, and she cannot replace them.
	tm.joins(tm.alice, "all")
	_, err = tm.Skills.LoadSkill(tm.alice, "payroll", 0)
	wantError(t, err, tool.NotFound, "there is no skill payroll")
	if text, err := tm.Skills.ListSkills(tm.alice, ""); err != nil || strings.Contains(text, "payroll") {
		t.Errorf("%s %v", text, err)
	}
	wantError(t, save(tm.alice, ""), tool.Denied, "the name payroll is taken")
	tm.joins(tm.alice, "finance")
	if text, err := tm.Skills.ListSkills(tm.alice, "ultramarine"); err != nil || !strings.Contains(text, "payroll") {
		t.Errorf("%s %v", text, err)
	}

	// A member opens it to everybody.
	open := []string{}
	said := saveSkill(tm.alice, t, tm.Gateway, skills.SkillDraft{Name: "payroll", Scope: "shared", Groups: &open})
	if !strings.Contains(said, "it is shared with everybody") {
		t.Error(said)
	}
	carol := tool.WithRemote(tool.WithPrincipal(t.Context(), "token:carol"))
	if got := tm.says(carol, t, "python", "from skills.payroll import payroll\npayroll()"); got != "wages" {
		t.Error(got)
	}
}

// narrowed saves a skill whose first version is for everybody.
func (tm *team) narrowed(t *testing.T) {
	t.Helper()
	d := skills.SkillDraft{Name: "payroll", Code: "def payroll(): return 'wages'\n", Description: "Pays ultramarine wages.", Scope: "shared"}
	saveSkill(tm.alice, t, tm.Gateway, d)
	if text, err := tm.Skills.LoadSkill(tm.bob, "payroll", 1); err != nil {
		t.Fatal(text, err)
	}
	d.Groups = &[]string{"finance", "audit"}
	if said := saveSkill(tm.alice, t, tm.Gateway, d); !strings.Contains(said, "it is shared with the groups finance, audit") {
		t.Error(said)
	}
}

// TestPendingOfGroups: what waits to be shared with a group is replaced by its members only.
func TestPendingOfGroups(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, true)
	d := skills.SkillDraft{Name: "payroll", Code: "def payroll(): return 'wages'\n", Description: "Pays wages.", Scope: "shared", Groups: &[]string{"finance"}}
	saveSkill(tm.alice, t, tm.Gateway, d)
	d.Groups = nil
	_, err := tm.Skills.SaveSkill(tm.bob, d)
	wantError(t, err, tool.Denied, "the name payroll is taken")
	if one, err := tm.store.LoadPending("payroll"); err != nil || one.Author != "oauth:alice" {
		t.Errorf("%+v %v", one.Front, err)
	}
}
