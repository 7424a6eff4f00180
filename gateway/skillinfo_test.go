package gateway_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/gateway/skills"
	"sallyport/internal/config"
	"sallyport/internal/skill"
	"sallyport/internal/tool"
)

// TestSkillList: everybody sees their own skills and the shared ones with all that is known of them, operators what waits too.
func TestSkillList(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := open(t, &config.Config{}, &gateway.Options{DataDir: data})
	store := skill.New(filepath.Join(data, "skills"))
	one := func(name, code string) skill.Skill {
		return skill.Skill{Front: skill.Front{Name: name, Description: "what " + name + " does", Language: skill.Python,
			Functions: []string{"double(n: int) -> int"}, Tools: map[string]string{"calc.add": strings.Repeat("0", 64)}},
			Body: "# " + name, Files: map[string][]byte{"skill.py": []byte(code), "skill_test.py": []byte("assert True")}}
	}
	for _, code := range []string{"def double(n): return n + n", "def double(n): return 2 * n"} {
		if _, err := store.Save("ann", one("double", code)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"common", "waiting"} {
		if _, err := store.Propose("bob", one(name, "def double(n): return n")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Approve("common", ""); err != nil {
		t.Fatal(err)
	}

	ann := tool.WithPrincipal(t.Context(), "ann")
	names := func(list []skills.SkillInfo, err error) (all string) {
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			all += s.Name + " " + s.Scope + " " + s.Author + ";"
		}
		return all
	}
	if got := names(g.Skills.SkillList(ann)); got != "common shared bob;double private ;" {
		t.Error(got)
	}
	if got := names(g.Skills.SkillList(tool.WithOperator(t.Context(), "ops"))); got != "common shared bob;waiting pending bob;" {
		t.Error(got)
	}
	d, err := g.Skills.SkillOf(ann, "double", 0)
	if err != nil || d.Version != 2 || len(d.Versions) != 2 || d.Versions[0] != 2 || !strings.Contains(d.Code, "2 * n") || !d.Tested || len(d.Files) != 2 ||
		d.Import != "from skills.double import double" || len(d.Digest) != 64 || len(d.Tools) != 1 || d.Tools[0].State != "gone" {
		t.Errorf("%+v %v", d, err)
	}
	if d, err := g.Skills.SkillOf(ann, "double", 1); err != nil || !strings.Contains(d.Code, "n + n") {
		t.Errorf("%+v %v", d, err)
	}
	_, err = g.Skills.SkillOf(tool.WithPrincipal(t.Context(), "eve"), "double", 0)
	wantError(t, err, tool.NotFound, "no skill double")
	_, err = g.Skills.PendingSkill(ann, "waiting")
	wantError(t, err, tool.Denied, "operators only")
	if d, err := g.Skills.PendingSkill(tool.WithOperator(ann, "ops"), "waiting"); err != nil || d.Author != "bob" || d.Scope != "pending" {
		t.Errorf("%+v %v", d, err)
	}
}
