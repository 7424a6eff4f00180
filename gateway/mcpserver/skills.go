package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/skills"
)

// Skills is the part of the gateway that the tools of profile skills call.
type Skills interface {
	SaveSkill(ctx context.Context, d skills.SkillDraft) (string, error)
	LoadSkill(ctx context.Context, name string, version int) (string, error)
	ListSkills(ctx context.Context, query string) (string, error)
}

// The tools of profile skills have the names that clients may know from other servers.
// Programs can do the same without them.

func saveSkillTool() *mcp.Tool {
	return &mcp.Tool{
		Name: "save_skill",
		Description: "Keep code as a skill that programs import: from skills.NAME import fn (TypeScript: \"skills/NAME\"). " +
			"An existing name gets a new version.",
		Annotations: &mcp.ToolAnnotations{OpenWorldHint: new(false)},
		InputSchema: json.RawMessage(`{"type":"object","required":["name"],"properties":{` +
			`"name":{"type":"string"},` +
			`"code":{"type":"string"},` +
			`"description":{"type":"string"},` +
			`"language":{"enum":["python","typescript"]},` +
			`"from_execution":{"type":"string","description":"instead of code: \"last\" program that worked, or its id"},` +
			`"params":{"type":"object","description":"its literals to become parameters: {\"repo\":\"octo/hello\"}"},` +
			`"tests":{"type":"string","description":"must pass"},` +
			`"scope":{"enum":["private","shared"]},` +
			`"groups":{"type":"array","items":{"type":"string"},"description":"only they see it"}}}`),
	}
}

func loadSkillTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        "load_skill",
		Description: "Show a skill: how to import it, and its code.",
		Annotations: readOnly(),
		InputSchema: json.RawMessage(`{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"version":{"type":"integer"}}}`),
	}
}

func listSkillsTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        "list_skills",
		Description: "List skills.",
		Annotations: readOnly(),
		InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}}}`),
	}
}

// skillTools implements the tools of profile skills.
type skillTools struct{ service Skills }

func (s skillTools) extras() []extra {
	return []extra{{saveSkillTool(), s.save}, {loadSkillTool(), s.load}, {listSkillsTool(), s.list}}
}

func (s skillTools) save(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	var d skills.SkillDraft
	if err := decodeArguments(args, map[string]any{
		"name": &d.Name, "code": &d.Code, "description": &d.Description, "language": &d.Language, "from_execution": &d.From,
		"params": &d.Params, "tests": &d.Tests, "scope": &d.Scope, "groups": &d.Groups,
	}, map[string]any{"skill_name": &d.Name}); err != nil {
		return nil, err
	}
	return toResult(s.service.SaveSkill(ctx, d))
}

func (s skillTools) load(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	var name string
	var version float64
	if err := decodeArguments(args, map[string]any{"name": &name, "version": &version}, map[string]any{"skill_name": &name}); err != nil {
		return nil, err
	}
	return toResult(s.service.LoadSkill(ctx, name, int(max(0, min(version, 1e9)))))
}

func (s skillTools) list(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	var query string
	if err := decodeArguments(args, map[string]any{"query": &query}); err != nil {
		return nil, err
	}
	return toResult(s.service.ListSkills(ctx, query))
}
