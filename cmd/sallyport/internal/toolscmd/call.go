package toolscmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/approvals"
	"sallyport/gateway/httpapi"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// CallCommand returns the verb.
func CallCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "call [flags] UPSTREAM.TOOL [ARGUMENTS]",
		Short: "call one tool",
		Long: `Call calls one tool as a program would: policy, approval, privacy and the audit
record apply. ARGUMENTS is a JSON object, @FILE or - for stdin; without it the tool
is called without arguments.

The text of the result is printed on stdout, or its structured content if it has no
text. Images and other binary content are listed on stderr; --json has them.

Exit status: 0 success; 1 the tool reports a failure, or cannot be called; 2 wrong
usage, arguments or settings; 75 the call needs approval; 124 timeout; 125 the
gateway could not do it; 130 interrupted.`,
		Example: `  sallyport call time.get_current_time '{"timezone": "UTC"}'
  sallyport call files.write_file @arguments.json
  sallyport call --json memory.read_graph | jq .structuredContent`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return cli.Misuse(cmd, "call needs UPSTREAM.TOOL, and its arguments as one JSON object in quotes")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			call, err := a.readCall(cmd, args)
			if err != nil {
				return err
			}
			return a.call(cmd.Context(), call, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole result as one JSON object")
	return cmd
}

// maxArguments bounds the arguments that are read, in bytes.
const maxArguments = 16 << 20

// readCall returns the call of a command line.
func (a *app) readCall(cmd *cobra.Command, args []string) (tool.Call, error) {
	id, err := tool.ParseID(args[0])
	if err != nil || id.Method() != "tools/call" {
		return tool.Call{}, cli.Misuse(cmd, "%.80q is not UPSTREAM.TOOL, such as time.get_current_time", args[0])
	}
	data := []byte("{}")
	if len(args) == 2 {
		if data, err = a.readArguments(args[1]); err != nil {
			return tool.Call{}, err
		}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return tool.Call{}, cli.Misuse(cmd, "the arguments are not a JSON object%s", cause(err))
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return tool.Call{}, err
	}
	return tool.Call{Tool: id, Args: compact.Bytes()}, nil
}

func cause(err error) string {
	if err == nil {
		return ""
	}
	return ": " + sanitize.Line(err.Error(), 200)
}

// readArguments returns the text of an argument: itself, of a file, or of stdin.
func (a *app) readArguments(text string) (data []byte, err error) {
	name, isFile := strings.CutPrefix(text, "@")
	switch {
	case text == "-":
		data, err = io.ReadAll(io.LimitReader(a.Stdin, maxArguments))
	case isFile:
		data, err = os.ReadFile(name)
	default:
		data = []byte(text)
	}
	if err != nil {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "read the arguments: " + err.Error(), Err: err}
	}
	return data, nil
}

func (a *app) call(ctx context.Context, call tool.Call, asJSON bool) error {
	return a.WithGateway(ctx, gateway.Options{NoPool: true, Purpose: "call"}, func(ctx context.Context, g *gateway.Gateway) error {
		defer a.OpenControl(a.Logger(slog.LevelError), httpapi.New(g.Service(), nil))() // so that its approval can be answered from another terminal
		p := a.Progress("calling "+call.Tool.String(), 0)
		result, err := g.Call(ctx, call)
		p.Stop()
		if err != nil {
			return a.callError(call, err)
		}
		if err := a.printResult(result, asJSON); err != nil {
			return err
		}
		if result.IsError {
			return cli.Status(cli.ExitFailed)
		}
		return nil
	})
}

// callError adds the next command to the error of a call. One that needs approval has an exit status of its own.
func (a *app) callError(call tool.Call, err error) error {
	fault, ok := errors.AsType[*tool.Error](err)
	if !ok {
		return err
	}
	shown := *fault
	if _, pending := errors.AsType[*approvals.PendingError](err); pending {
		shown.Hint = "approvals of call end with it: answer from another terminal while it waits (approval.wait in upstreams.yaml): sallyport approvals"
		a.ReportToolError(&shown)
		return cli.Status(cli.ExitSuspended)
	}
	switch shown.Kind {
	case tool.NotFound:
		shown.Hint = strings.TrimPrefix(shown.Hint+"; list the tools: sallyport tools --upstream "+call.Tool.Upstream, "; ")
	case tool.Invalid:
		shown.Hint = strings.TrimPrefix(shown.Hint+"; see its parameters: sallyport search --detail full "+call.Tool.Name, "; ")
	}
	return &shown
}

// printResult prints a result: as JSON, or its text, with a list of the rest on stderr.
func (a *app) printResult(r tool.Result, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(httpapi.NewToolResult(r))
	}
	text := r.Text()
	if text == "" && len(r.Structured) > 0 {
		text = string(r.Structured)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if err := cli.Write(a.Stdout, text); err != nil {
		return err
	}
	for _, c := range r.Content {
		if c.Data != nil {
			a.Say(fmt.Sprintf("%s, %d bytes: --json prints it", sanitize.Line(c.MIME, 60), len(c.Data)))
		}
	}
	return nil
}
