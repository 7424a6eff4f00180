package engine

import (
	"context"
	"maps"
	"slices"

	"sallyport/gateway"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow/author"
	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// Author returns what adds workflows to the folder of an engine. settings returns the settings in force.
func (m *Engine) Author(g *gateway.Gateway, settings func() *config.Config) *author.Author {
	return author.New(author.Options{
		Dir: settings().Workflows.Path, Definitions: m.definitions, Record: g.Auditor.Audit,
		Lint: func(ctx context.Context) lint.Options { return LintOptions(ctx, settings(), g, m.definitions()) },
		Reload: func() {
			if m.Library.Reload() {
				m.NotifyChanged()
			}
		},
	})
}

// LintOptions returns the names that workflows of a caller can refer to.
func LintOptions(ctx context.Context, cfg *config.Config, g *gateway.Gateway, all []*spec.Definition) lint.Options {
	opts := lint.Options{Tools: append([]tool.Tool{}, g.Catalog.Tools()...), Upstreams: []string{}, Workflows: ByName(all),
		Secrets: slices.Sorted(maps.Keys(cfg.Workflows.Secrets)), Environments: append([]string{"default"}, slices.Sorted(maps.Keys(cfg.Environments))...), Models: append([]string{}, slices.Sorted(maps.Keys(cfg.Models))...)}
	opts.Skills = func(name string) ([]string, bool) { return g.Skills.SkillFunctions(ctx, name) }
	for _, up := range g.Catalog.Upstreams() {
		opts.Upstreams = append(opts.Upstreams, up.ID)
	}
	opts.Upstreams = append(opts.Upstreams, toolcall.WorkflowsID)
	opts.Tools = append(opts.Tools, exposedTools(opts.Workflows)...)
	return opts
}

// exposedTools returns the workflows with "expose: true" as tools.
func exposedTools(workflows map[string]*spec.Definition) (tools []tool.Tool) {
	var wires []string
	for _, name := range slices.Sorted(maps.Keys(workflows)) {
		if d := workflows[name]; d.Expose {
			wires = append(wires, name)
			tools = append(tools, tool.Tool{Wire: name, Description: d.Description, Input: spec.InputSchema(d), Output: spec.OutputSchema(d)})
		}
	}
	for i, name := range tool.Identifiers(wires) {
		tools[i].ID = tool.ID{Upstream: toolcall.WorkflowsID, Name: name}
	}
	return tools
}
