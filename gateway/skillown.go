package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/plain"
	"sallyport/internal/skill"
	"sallyport/sandbox/bridge"
)

// ownSkills are the functions of programs about skills.
func (g *Gateway) ownSkills() map[string]ownTool {
	return map[string]ownTool{
		"save_skill": {ownInput(`"name":{"type":"string"},"code":{"type":"string"},"description":{"type":"string"},"language":{"type":"string"},"params":{"type":"object"},`+
			`"from_execution":{"type":"string"},"tests":{"type":"string"},"scope":{"type":"string"}`, "name"), g.saveForProgram},
		"load_skill":   {ownInput(`"name":{"type":"string"},"version":{"type":"integer"}`, "name"), g.loadForProgram},
		"list_skills":  {ownInput(`"query":{"type":"string"}`), g.listForProgram},
		"import_skill": {ownInput(`"name":{"type":"string"},"language":{"type":"string"}`, "name", "language"), g.importSkill},
	}
}

func (g *Gateway) saveForProgram(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct {
		Name, Code, Description, Language, Tests, Scope string
		From                                            string `json:"from_execution"`
		Params                                          map[string]json.RawMessage
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return "", toolcall.Invalid("arguments must be one JSON object", "")
	}
	if in.From != "" {
		in.Language = "" // it is that of the execution
	}
	done, err := yield(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return g.SaveSkill(ctx, SkillDraft{Name: in.Name, Code: in.Code, Description: in.Description, Language: in.Language, From: in.From, Params: in.Params, Tests: in.Tests, Scope: in.Scope})
}

func (g *Gateway) loadForProgram(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct {
		Name    string
		Version int
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return "", toolcall.Invalid("version is too large", "")
	}
	return g.LoadSkill(ctx, in.Name, in.Version)
}

func (g *Gateway) listForProgram(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct{ Query string }
	if err := json.Unmarshal(args, &in); err != nil {
		return "", toolcall.Invalid("arguments must be one JSON object of strings", "")
	}
	return g.ListSkills(ctx, in.Query)
}

// explainSkills adds the text of lines in skills in TypeScript, which a sandbox does not have.
func (g *Gateway) explainSkills(ctx context.Context, lines []bridge.Line) {
	for i := range lines {
		line := &lines[i]
		module, file, ok := strings.Cut(strings.TrimPrefix(line.File, skillsID+"/"), "/")
		if !ok || line.Source != "" || i >= maxSkillLines {
			continue
		}
		one, err := g.skill(ctx, module, 0)
		if err != nil {
			continue
		}
		if source := strings.Split(string(one.Files[path.Clean(file)]), "\n"); line.Line > 0 && line.Line <= len(source) {
			line.Source = plain.Head(strings.TrimSpace(source[line.Line-1]), 400)
		}
	}
}

// maxSkillLines is how many lines of one fault are looked up.
const maxSkillLines = 12

// testTypeScript is the program that runs the tests of a skill.
func testTypeScript(one skill.Skill) string {
	return fmt.Sprintf("import %q;\n", skillsID+"/"+one.Name+"/"+skill.TestFile(one.Language))
}

// nodeFailure is how node:test reports that something failed.
var nodeFailure = regexp.MustCompile(`(?m)^(# fail [1-9]|not ok |ℹ fail [1-9])`)

func failedNodeTests(one skill.Skill, e execution.Result) bool {
	return one.Language == skill.TypeScript && nodeFailure.MatchString(e.Stdout.Text)
}
