package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/environments"
	"sallyport/internal/config"
)

// Choices is the part of the gateway that the tools of profile environments call.
type Choices interface {
	ChooseEnvironment(ctx context.Context, c environments.Choice) (string, error)
	EnvironmentConfig(ctx context.Context) (string, error)
}

func configureTool(environments map[string]config.Environment) *mcp.Tool {
	property := `{"type":"string"}`
	if len(environments) > 0 {
		names := slices.Sorted(maps.Keys(environments))
		if !slices.Contains(names, config.DefaultEnvironment) {
			names = append([]string{config.DefaultEnvironment}, names...)
		}
		if data, err := json.Marshal(map[string]any{"enum": names}); err == nil {
			property = string(data)
		}
	}
	return &mcp.Tool{
		Name:        "configure_environment",
		Description: "Choose the environment that programs run in from now on.",
		Annotations: &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
		InputSchema: json.RawMessage(`{"type":"object","required":["environment"],"properties":{"environment":` + property + `}}`),
	}
}

func configTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        "get_environment_config",
		Description: "Tell the environment in use, its interpreters, and the limits of a program.",
		Annotations: readOnly(),
		InputSchema: json.RawMessage(`{"type":"object"}`),
	}
}

// environmentTools implements the tools that select and show an environment.
type environmentTools struct {
	service      Choices
	environments map[string]config.Environment
}

func (c environmentTools) extras() []extra {
	return []extra{{configureTool(c.environments), c.configure}, {configTool(), c.config}}
}

// configure also accepts the arguments of a similar server: the name of a conda environment or
// the folder of a virtual one, which must be in the settings.
func (c environmentTools) configure(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	var choice environments.Choice
	var kind, conda, venv, uv string
	err := decodeArguments(args, map[string]any{"environment": &choice.Environment},
		map[string]any{"type": &kind, "conda_name": &conda, "venv_path": &venv, "uv_venv_path": &uv, "name": &choice.Environment})
	if err != nil {
		return nil, err
	}
	choice.Folder = map[string]string{"conda": conda, "venv": venv, "venv-uv": uv, "uv": uv}[kind]
	choice.Folder = cmp.Or(choice.Folder, conda, venv, uv)
	return toResult(c.service.ChooseEnvironment(ctx, choice))
}

func (c environmentTools) config(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	if err := decodeArguments(args, nil); err != nil {
		return nil, err
	}
	return toResult(c.service.EnvironmentConfig(ctx))
}
