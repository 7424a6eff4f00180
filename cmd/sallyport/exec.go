package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/httpapi"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

func execCommand(a *app) *cobra.Command {
	var program execution.Program
	var asJSON bool
	var folder string
	cmd := &cobra.Command{
		Use:   "exec [flags] FILE...",
		Short: "run a program in a sandbox, as execute_code does",
		Long: `Exec runs a Python, TypeScript or JavaScript program as execute_code would: in a
gVisor sandbox, with the wrappers of all upstreams. The extension of
FILE selects the language (.py, .ts, .js, .mjs); - is stdin, and Python unless
--language says otherwise.

With --session several FILEs run one after the other, until one fails, and
each finds the variables of those before it in the same language.

The program's stdout and stderr are printed when it has ended. Its value (the
last expression in Python, the default export or a trailing expression in
TypeScript) is the last line of stdout; an error goes to stderr. What it emits
(images, files, tables) is listed on stderr; --emit writes it to files.

Exit status: 0 success; 1 it failed, or its own status if it called exit;
2 wrong usage or settings; 75 a call needs approval; 124 timeout; 125 another
limit, or the sandbox could not run it; 130 interrupted.`,
		Example: `  sallyport exec report.py
  echo '6 * 7' | sallyport exec -
  sallyport exec --timeout 5s --json job.ts | jq .value
  sallyport exec --emit out plot.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return cli.Misuse(cmd, "exec needs a FILE, or - for stdin")
			case len(args) > 1 && program.Session == "":
				return cli.Misuse(cmd, "exec runs one FILE, not %d; several with --session NAME", len(args))
			case program.Timeout <= 0 && cmd.Flags().Changed("timeout"):
				return cli.Misuse(cmd, "--timeout must be more than 0, not %s; without it the settings say", program.Timeout)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.exec(cmd.Context(), args, program, folder, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&program.Language, "language", "", "run it as `LANGUAGE`: python or typescript")
	flags.DurationVar(&program.Timeout, "timeout", 0, "stop it after `DURATION`, such as 30s; never later than the\nsettings say")
	flags.StringVar(&folder, "emit", "", "write what the program emits to files in `DIR`; nothing\nthat is there is overwritten")
	flags.StringVar(&program.Session, "session", "", "let several FILEs share their variables, in the session `NAME`")
	flags.StringVar(&program.Environment, "environment", "", "run it in the environment `NAME` of the settings")
	flags.StringVar(&program.Isolation, "isolation", "", "program: run it in a sandbox that no other program uses")
	flags.StringVar(&program.Workspace, "workspace", "", "let /workspace be the workspace `NAME`; without it \"default\"")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object for each FILE")
	a.SandboxFlag(cmd)
	cli.CompleteFlag(cmd, "language", "python", "typescript")
	return cmd
}

func (a *app) exec(ctx context.Context, files []string, program execution.Program, folder string, asJSON bool) (err error) {
	cfg, err := a.Load()
	if err == nil {
		err = cli.Platform(cfg)
	}
	if err != nil {
		return err
	}
	programs := make([]execution.Program, len(files))
	for i, file := range files {
		if programs[i], err = a.program(file, program); err != nil {
			return err
		}
	}
	if err := makeFolder(folder); err != nil {
		return err
	}
	opts := gateway.Options{NoPool: true, Purpose: "exec"}
	if opts.DebugLog, err = a.RunscLog(); err != nil {
		return err
	}
	return a.WithGateway(ctx, opts, func(ctx context.Context, g *gateway.Gateway) error {
		defer a.OpenControl(a.Logger(slog.LevelError), httpapi.New(g.Service(), nil))() // so that its approvals can be answered from another terminal
		for _, program := range programs {
			if err := a.runProgram(ctx, g, program, folder, asJSON); err != nil {
				return err
			}
		}
		return nil
	})
}

// program returns the program for a file, with the options that apply to all files.
func (a *app) program(file string, program execution.Program) (_ execution.Program, err error) {
	if program.Language == "" {
		if program.Language, err = cli.LanguageOf(file); err != nil {
			return program, err
		}
	}
	program.Code, err = a.readProgram(file)
	return program, err
}

func (a *app) runProgram(ctx context.Context, g *gateway.Gateway, program execution.Program, folder string, asJSON bool) error {
	p := a.Progress("running the program", 0)
	e, err := g.Executor.Execute(ctx, program)
	p.Stop()
	if err != nil {
		return err
	}
	files, unwritten := writeEmitted(folder, e.Emitted)
	if asJSON {
		err = a.PrintJSON(newExecutionJSON(e).withFiles(files))
	} else {
		err = a.printExecution(e)
		a.listEmitted(e.Emitted, files)
	}
	if err := cmp.Or(err, unwritten); err != nil {
		return err
	}
	if e.Status == execution.Held {
		a.Say("approvals of exec end with it: answer from another terminal while it waits (approval.wait in upstreams.yaml), or run the program through serve")
	}
	return cli.ExecutionStatus(e)
}

// maxProgram bounds the bytes read of a program. It is more than the gateway accepts, so that the gateway still refuses a larger one.
const maxProgram = 2 << 20

func (a *app) readProgram(file string) (string, error) {
	in := a.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", &tool.Error{Kind: tool.Invalid, Message: err.Error(), Err: err}
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxProgram))
	if err != nil {
		return "", &tool.Error{Kind: tool.Invalid, Message: err.Error(), Err: err}
	}
	return string(data), nil
}

// printExecution prints the program's stdout, value, stderr, failure and notes.
func (a *app) printExecution(e execution.Result) error {
	if err := cli.Write(a.Stderr, e.Stderr.Text); err != nil {
		return err
	}
	out := e.Stdout.Text
	if e.Value != nil {
		if out != "" && !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		out += valueLine(*e.Value) + "\n"
	}
	if err := cli.Write(a.Stdout, out); err != nil {
		return err
	}
	if ending := failureText(e); ending != "" {
		if e.Stderr.Text != "" && !strings.HasSuffix(e.Stderr.Text, "\n") {
			ending = "\n" + ending
		}
		fmt.Fprintln(a.Stderr, cli.Clean(ending))
	}
	for _, note := range e.Notes {
		a.Say("note: " + note)
	}
	return nil
}

// valueLine returns a string value unquoted, and any other value as the guest encoded it.
func valueLine(v bridge.Value) string {
	var s string
	if v.Kind == "json" && json.Unmarshal([]byte(v.Text), &s) == nil && strings.HasPrefix(v.Text, `"`) {
		return s
	}
	if cut := v.Size - int64(len(v.Text)); cut > 0 {
		return fmt.Sprintf("%s\n[... %d bytes cut ...]", v.Text, cut)
	}
	return v.Text
}

// failureText returns how a program failed, in the words of execute_code. It is "" for a
// program that succeeded or called exit.
func failureText(e execution.Result) string {
	if e.Status == sandbox.OK || e.Status == sandbox.Exited {
		return ""
	}
	bare := e
	bare.Stdout, bare.Stderr, bare.Value, bare.Emitted, bare.Notes = sandbox.Output{}, sandbox.Output{}, nil, nil, nil
	if e.Status == sandbox.Failed {
		return bare.Text()
	}
	return "sallyport: " + strings.TrimSuffix(bare.Text(), ".")
}

// executionJSON is what exec --json prints. Fields are added, never changed.
type executionJSON struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	// Status is ok, failed, exited, timeout, cpu, memory, output, canceled, held or crashed.
	Status string `json:"status"`
	// Exit is the program's own status, for exited and crashed.
	Exit      int    `json:"exit,omitempty"`
	Stdout    string `json:"stdout"`
	StdoutCut int64  `json:"stdout_cut_bytes,omitempty"`
	Stderr    string `json:"stderr"`
	StderrCut int64  `json:"stderr_cut_bytes,omitempty"`
	// Value is absent if there is none. It is the JSON value if ValueKind is json, else a text that describes the value.
	Value     any        `json:"value,omitempty"`
	ValueKind string     `json:"value_kind,omitempty"`
	ValueCut  int64      `json:"value_cut_bytes,omitempty"`
	Fault     *faultJSON `json:"fault,omitempty"`
	// Emitted is what the program sent to its client, in order.
	Emitted []emittedJSON `json:"emitted,omitempty"`
	// Notes are further remarks for the caller.
	Notes      []string `json:"notes,omitempty"`
	Calls      int      `json:"calls"`
	DurationMS int64    `json:"duration_ms"`
}

type faultJSON struct {
	Type    string     `json:"type"`
	Message string     `json:"message"`
	Hint    string     `json:"hint,omitempty"`
	Lines   []lineJSON `json:"lines"`
}

type lineJSON struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line"`
	Function string `json:"function,omitempty"`
	Source   string `json:"source,omitempty"`
}

func newExecutionJSON(e execution.Result) executionJSON {
	out := executionJSON{
		ID: e.ID, Language: e.Language, Status: string(e.Status), Exit: e.Exit,
		Stdout: e.Stdout.Text, StdoutCut: e.Stdout.Cut, Stderr: e.Stderr.Text, StderrCut: e.Stderr.Cut,
		Emitted: newEmittedJSON(e.Emitted), Notes: e.Notes, Calls: e.Calls, DurationMS: e.Duration.Round(time.Millisecond).Milliseconds(),
	}
	if e.Value != nil {
		out.setValue(*e.Value)
	}
	if e.Fault != nil {
		out.Fault = &faultJSON{Type: e.Fault.Type, Message: e.Fault.Message, Hint: e.Fault.Hint, Lines: []lineJSON{}}
		for _, line := range e.Fault.Lines {
			out.Fault.Lines = append(out.Fault.Lines, lineJSON(line))
		}
	}
	return out
}

// setValue sets the value. It checks JSON from the guest, which is not trusted.
func (out *executionJSON) setValue(v bridge.Value) {
	if v.Kind == "json" && json.Valid([]byte(v.Text)) {
		out.Value, out.ValueKind = json.RawMessage(v.Text), "json"
		return
	}
	out.Value, out.ValueKind, out.ValueCut = v.Text, "text", max(0, v.Size-int64(len(v.Text)))
}
