package toolsearch

import (
	"context"

	"sallyport/codegen"
	"sallyport/gateway/catalog"
	"sallyport/gateway/guard"
	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// ToolView is a tool for people: its definition, and what models and programs see of it.
type ToolView struct {
	// Tool is the known definition with the observed shape of its results. All its text is the upstream's.
	Tool tool.Tool
	// Digest identifies its definition.
	Digest string
	// Policy is "ask" where every call needs approval, "deny" where all calls are refused, else "".
	Policy string
	// Texts are what search_tools shows of it, for each language and detail.
	Texts []ToolText
}

// ToolText is the text about a tool that a model reads.
type ToolText struct {
	Language string
	Detail   Detail
	Text     string
	// Tokens is how many the text has (o200k).
	Tokens int
}

// ToolView returns a tool as it is known now, without a connection to its upstream. Errors are *tool.Error.
func (sr *Searcher) ToolView(ctx context.Context, id tool.ID) (ToolView, error) {
	e, ok := sr.opts.Catalog.Lookup(id)
	if !ok {
		return ToolView{}, toolcall.Unknown("tool", id.String(), "")
	}
	v := ToolView{Tool: sr.opts.Catalog.WithObserved(e), Digest: e.Digest(), Policy: guard.PolicyLabel(sr.opts.Guard.ExpectedAction(ctx, id, true))}
	for _, lang := range []codegen.Language{codegen.Python, codegen.TypeScript} {
		for _, detail := range []Detail{Names, Summary, Signature, Full} {
			described := describe(v.Tool, detail, lang, catalog.Boilerplate{})
			described.Policy = v.Policy
			text := Found{Detail: detail, Language: string(lang), Tools: []FoundTool{described}}.Text()
			v.Texts = append(v.Texts, ToolText{string(lang), detail, text, sr.countTokens(text)})
		}
	}
	return v, nil
}

// CountTokens returns how many tokens (o200k) a model reads of a text.
func (sr *Searcher) CountTokens(text string) int { return sr.countTokens(text) }
