package gateway

import (
	"context"
	"strings"

	"sallyport/internal/tool"
)

// Tool returns a tool as it is known now, without a connection to its upstream.
func (g *Gateway) Tool(id tool.ID) (tool.Tool, bool) {
	e, ok := g.catalog.known(id)
	if !ok {
		return tool.Tool{}, false
	}
	return e.Tool, true
}

// SkillLanguage returns the language of a skill of whoever asks: python or typescript. Errors are *tool.Error.
func (g *Gateway) SkillLanguage(ctx context.Context, name string) (string, error) {
	found, err := g.skill(ctx, name, 0)
	return found.Language, err
}

// SkillFunctions returns the names of what a skill of whoever asks exports, nil where they are not known, and whether there is such a skill.
func (g *Gateway) SkillFunctions(ctx context.Context, name string) (names []string, ok bool) {
	found, err := g.skill(ctx, name, 0)
	if err != nil {
		return nil, false
	}
	if len(found.Functions) == maxSkillFunctions { // there may be more
		return nil, true
	}
	for _, signature := range found.Functions {
		function, _, _ := strings.Cut(strings.TrimPrefix(signature, "async "), "(")
		names = append(names, function)
	}
	return names, true
}
