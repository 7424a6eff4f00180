package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Privacy is the part of the gateway that the tools of profile privacy call.
type Privacy interface {
	Mask(ctx context.Context, text string) (clean, found string, err error)
	Unmask(ctx context.Context, text string) (string, error)
}

func sanitizeTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        "sanitize_pii",
		Description: "Replace personal data in a text with tokens like [EMAIL_1], which tools understand.",
		Annotations: readOnly(),
		InputSchema: json.RawMessage(`{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`),
	}
}

func restoreTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        "restore_pii",
		Description: "Put the data back in place of tokens, if the settings allow it.",
		Annotations: readOnly(),
		InputSchema: json.RawMessage(`{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`),
	}
}

// privacy implements the tools of profile privacy.
type privacy struct{ tokens Privacy }

func (p privacy) extras() []extra {
	return []extra{{sanitizeTool(), p.sanitize}, {restoreTool(), p.restore}}
}

func (p privacy) sanitize(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	given, err := textOf(args)
	if err != nil {
		return nil, err
	}
	clean, found, err := p.tokens.Mask(ctx, given)
	if err != nil {
		return nil, err
	}
	if found != "" {
		clean += "\n(found: " + found + ")"
	}
	return textResult(clean, false), nil
}

func (p privacy) restore(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	given, err := textOf(args)
	if err != nil {
		return nil, err
	}
	return toResult(p.tokens.Unmask(ctx, given))
}

// maxPrivacyText is the longest text that is processed, in bytes.
const maxPrivacyText = 4 << 20

func textOf(args json.RawMessage) (string, error) {
	var given string
	if err := decodeArguments(args, map[string]any{"text": &given}); err != nil {
		return "", err
	}
	switch {
	case given == "":
		return "", invalidArgument("text is missing or empty", "")
	case len(given) > maxPrivacyText:
		return "", invalidArgument("text is longer than 4 MiB", "split it")
	}
	return given, nil
}
