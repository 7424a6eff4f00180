//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// program has a model's program call the tool, over MCP, in a gateway of its own for each try.
type program struct {
	*chaos
	key     string
	elicits bool // the client answers elicitations
}

// code is a program that calls the tool once; changed ones spell the call otherwise.
func (p *program) code(changed bool) (code, language string) {
	if p.rand.IntN(2) == 0 {
		if changed {
			return fmt.Sprintf("from servers.crm import inc\nk = %q\nprint('again', inc(**{'key': k}))\n", p.key), "python"
		}
		return fmt.Sprintf("from servers.crm import inc\nprint(inc(key=%q))\n", p.key), "python"
	}
	if changed {
		return fmt.Sprintf("import { inc } from 'servers/crm';\nconst key = %q;\nconsole.log('again', await inc({ key }));\n", p.key), "typescript"
	}
	return fmt.Sprintf("import { inc } from 'servers/crm';\nconsole.log(await inc({ key: %q }));\n", p.key), "typescript"
}

func (p *program) arguments(first bool) map[string]any {
	if !first && p.rand.IntN(4) > 0 {
		return map[string]any{"code": "", "resume": "last"}
	}
	code, language := p.code(!first)
	arguments := map[string]any{"code": code, "language": language}
	if !first {
		arguments["resume"] = "last"
	}
	return arguments
}

func (p *program) try(ctx context.Context, first, kill bool) (attempt, error) {
	arguments := p.arguments(first)
	cmd := p.command(ctx, "serve", "--log-level", "error")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	var approved atomic.Int64
	options := &mcp.ClientOptions{}
	if p.elicits {
		answers := p.rand.Perm(4)
		options.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return p.reply(answers[0], &approved), nil
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "chaos", Version: "1"}, options)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return attempt{}, err
	}
	var result *mcp.CallToolResult
	var failed error
	killed, err := p.runAndKill(p.key, kill, func() *os.Process { return cmd.Process }, func() {
		result, failed = session.CallTool(ctx, &mcp.CallToolParams{Name: "execute_code", Arguments: arguments})
	})
	if err != nil {
		return attempt{}, err
	}
	closed := session.Close()
	a := attempt{killed: killed, approved: int(approved.Load())}
	switch {
	case killed:
		return a, nil
	case failed != nil:
		return a, failed
	}
	if text, ok := result.Content[0].(*mcp.TextContent); ok {
		a.output = text.Text
	}
	a.ended = !strings.HasPrefix(a.output, "held") && !strings.Contains(a.output, "ToolError")
	return a, closed
}

// reply is the user's answer to the question whether a possibly executed call is to be made.
func (p *program) reply(choice int, approved *atomic.Int64) *mcp.ElicitResult {
	if choice == 0 {
		return &mcp.ElicitResult{Action: "cancel"}
	}
	decision := []string{"", "once", "done", "deny"}[choice]
	if decision == "once" {
		approved.Add(1) // before the gateway knows: it is killed at any time
	}
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}
}
