package gateway

import (
	"context"

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
