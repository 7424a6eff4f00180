package skills

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/sanitize"
	"sallyport/internal/skill"
	"sallyport/sandbox/bridge"
)

// Builtins returns the functions for programs about skills.
func (s *Library) Builtins() map[string]toolsearch.Builtin {
	return map[string]toolsearch.Builtin{
		"save_skill": toolsearch.NewBuiltin(s.saveForProgram, `"name":{"type":"string"},"code":{"type":"string"},"description":{"type":"string"},"language":{"type":"string"},"params":{"type":"object"},`+
			`"from_execution":{"type":"string"},"tests":{"type":"string"},"scope":{"type":"string"},"groups":{"type":"array","items":{"type":"string"}}`, "name"),
		"load_skill":   toolsearch.NewBuiltin(s.loadForProgram, `"name":{"type":"string"},"version":{"type":"integer"}`, "name"),
		"list_skills":  toolsearch.NewBuiltin(s.listForProgram, `"query":{"type":"string"}`),
		"skill_infos":  toolsearch.NewBuiltin(s.infosForProgram, ""),
		"import_skill": toolsearch.NewBuiltin(compiler{s}.importSkill, `"name":{"type":"string"},"language":{"type":"string"}`, "name", "language"),
	}
}

func (s *Library) saveForProgram(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct {
		Name, Code, Description, Language, Tests, Scope string
		From                                            string `json:"from_execution"`
		Params                                          map[string]json.RawMessage
		Groups                                          *[]string
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return "", toolcall.Invalid("arguments must be one JSON object", "")
	}
	if in.From != "" {
		in.Language = "" // the execution determines it
	}
	done, err := toolcall.Yield(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return s.SaveSkill(ctx, SkillDraft{Name: in.Name, Code: in.Code, Description: in.Description, Language: in.Language, From: in.From, Params: in.Params, Tests: in.Tests, Scope: in.Scope, Groups: in.Groups})
}

func (s *Library) loadForProgram(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct {
		Name    string
		Version int
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return "", toolcall.Invalid("version is too large", "")
	}
	return s.LoadSkill(ctx, in.Name, in.Version)
}

func (s *Library) listForProgram(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct{ Query string }
	if err := json.Unmarshal(args, &in); err != nil {
		return "", toolcall.Invalid("arguments must be one JSON object of strings", "")
	}
	return s.ListSkills(ctx, in.Query)
}

// infosForProgram returns the names and descriptions of the skills, as JSON.
func (s *Library) infosForProgram(ctx context.Context, _ json.RawMessage) (string, error) {
	if s.store == nil {
		return "", noStoreError()
	}
	list, err := s.findSkills(ctx, viewOf(ctx, s), "", 0)
	if err != nil {
		return "", err
	}
	short := make([]map[string]string, len(list))
	for i, one := range list {
		short[i] = map[string]string{"name": skill.Module(one.Name), "description": one.Description}
	}
	text, err := json.Marshal(short)
	return string(text), err
}

// Explain adds the text of lines in skills in TypeScript, which a sandbox does not have.
func (s *Library) Explain(ctx context.Context, lines []bridge.Line) {
	for i := range lines {
		line := &lines[i]
		module, file, ok := strings.Cut(strings.TrimPrefix(line.File, toolcall.SkillsID+"/"), "/")
		if !ok || line.Source != "" || i >= maxSkillLines {
			continue
		}
		one, err := s.skill(ctx, module, 0)
		if err != nil {
			continue
		}
		if source := strings.Split(string(one.Files[path.Clean(file)]), "\n"); line.Line > 0 && line.Line <= len(source) {
			line.Source = sanitize.Head(strings.TrimSpace(source[line.Line-1]), 400)
		}
	}
}

// maxSkillLines is how many lines of one fault are looked up.
const maxSkillLines = 12

// testTypeScript returns the program that runs the tests of a skill.
func testTypeScript(one skill.Skill) string {
	return fmt.Sprintf("import %q;\n", toolcall.SkillsID+"/"+one.Name+"/"+skill.TestFile(one.Language))
}

// nodeFailure matches a failure in the output of node:test.
var nodeFailure = regexp.MustCompile(`(?m)^(# fail [1-9]|not ok |ℹ fail [1-9])`)

func failedNodeTests(one skill.Skill, e execution.Result) bool {
	return one.Language == skill.TypeScript && nodeFailure.MatchString(e.Stdout.Text)
}
