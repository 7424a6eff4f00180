package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/task"
	"sallyport/internal/tool"
)

// Tasks is the part of the gateway that the tool of profile tasks calls.
type Tasks interface {
	Run(ctx context.Context, r task.Request, seen func(task.Task)) (task.Task, error)
}

func runTaskTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        "run_task",
		Description: "Do a task in words: the gateway searches tools, writes a program and runs it, and returns the answer.",
		InputSchema: json.RawMessage(`{"type":"object","required":["task"],"properties":{` +
			`"task":{"type":"string"},` +
			`"only":{"type":"array","items":{"type":"string"},"description":"upstreams it may use"},` +
			`"args":{"type":"object","description":"values it needs, by name"},` +
			`"output":{"type":"object","description":"JSON Schema of the answer"},` +
			`"plan":{"type":"boolean","description":"return the program, do not run it"}}}`),
	}
}

// taskTools implements the tool of profile tasks.
type taskTools struct{ service Tasks }

func (t taskTools) extras() []extra { return []extra{{runTaskTool(), t.run}} }

func (t taskTools) run(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	var r task.Request
	if err := decodeArguments(args, map[string]any{"task": &r.Task, "only": &r.Only, "args": &r.Args, "output": &r.Output, "plan": &r.Plan}); err != nil {
		return nil, err
	}
	if caller, ok := ctx.Value(requestKey{}).(*request); ok {
		defer caller.client.out.Flush()
		r.Peer = caller.peer()
	}
	done, err := t.service.Run(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	result, err := toResult(taskText(done), nil)
	if result != nil {
		result.IsError = done.Status != task.Done && done.Status != task.Planned
	}
	return result, err
}

// taskText is what a model reads of a task.
func taskText(t task.Task) string {
	var b strings.Builder
	switch t.Status {
	case task.Done:
		return t.Answer
	case task.Planned:
		return t.Program
	case task.Asked:
		b.WriteString("It needs values: call run_task again with args.")
		for _, q := range t.Questions {
			fmt.Fprintf(&b, "\n%s: %s", q.Name, q.Text)
			if len(q.Choices) > 0 {
				b.WriteString(" One of " + strings.Join(q.Choices, ", "))
			}
		}
	case task.Held:
		fmt.Fprintf(&b, "A call waits for approval by a person. Execution %s can be resumed with execute_code.", t.Execution)
	default:
		b.WriteString(t.Error)
	}
	if t.Program != "" && t.Status == task.Refused {
		b.WriteString("\nA guess, to be edited and run with execute_code:\n" + t.Program)
	}
	return b.String()
}

// peer returns the client, if it answers requests during a call; else nil.
func (r *request) peer() tool.Peer {
	if r.client.modern || !r.client.answers[methodElicit] && !r.client.answers[methodSample] {
		return nil
	}
	return programClient{r.client}
}
