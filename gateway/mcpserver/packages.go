package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/environments"
	"sallyport/internal/config"
)

// installable reports whether a model may install packages in some environment.
func installable(environments map[string]config.Environment) bool {
	for _, e := range environments {
		if e.Install {
			return true
		}
	}
	return false
}

// The package tools have the names that clients may know from other servers.

func installTool(environments map[string]config.Environment) *mcp.Tool {
	return &mcp.Tool{
		Name:        "install_dependencies",
		Description: "Install packages for your programs, until the server ends.",
		InputSchema: packagesSchema(environments, `"required":["packages"],`, `"pandas==2.2.3" or "zod@3.25.0"`),
	}
}

func checkInstalledTool(environments map[string]config.Environment) *mcp.Tool {
	return &mcp.Tool{
		Name:        "check_installed_packages",
		Description: "Tell which packages programs can import, with versions.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)},
		InputSchema: packagesSchema(environments, "", "default: all"),
	}
}

func packagesSchema(environments map[string]config.Environment, required, about string) json.RawMessage {
	quoted, err := json.Marshal(about)
	if err != nil {
		quoted = []byte(`""`)
	}
	return json.RawMessage(`{"type":"object",` + required + `"properties":{` +
		`"packages":{"type":"array","items":{"type":"string"},"description":` + string(quoted) + `},` +
		environmentProperty(environments) +
		`"language":{"enum":["python","typescript"]}}}`)
}

// packages implements the package tools.
type packages struct {
	service      Packages
	environments map[string]config.Environment
}

func (p packages) extras() []extra {
	return []extra{{installTool(p.environments), p.install}, {checkInstalledTool(p.environments), p.listInstalled}}
}

func (p packages) install(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	return p.answer(ctx, args, p.service.InstallPackages)
}

func (p packages) listInstalled(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	return p.answer(ctx, args, p.service.InstalledPackages)
}

func (p packages) answer(ctx context.Context, args json.RawMessage, verb func(context.Context, environments.Packages) (string, error)) (*mcp.CallToolResult, error) {
	var asked environments.Packages
	parameters := map[string]any{"packages": &asked.Names, "language": &asked.Language}
	if environmentProperty(p.environments) != "" {
		parameters["environment"] = &asked.Environment
	}
	if err := decodeArguments(args, parameters); err != nil {
		return nil, err
	}
	said, err := verb(ctx, asked)
	if err != nil {
		return nil, err
	}
	return textResult(said, false), nil
}
