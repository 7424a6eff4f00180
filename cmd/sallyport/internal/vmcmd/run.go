package vmcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"sallyport/internal/tool"
)

// vm is one virtual machine.
type vm struct {
	*app
	engine
}

// command returns a process of the engine's program. Its own messages are UTF-8 where it can.
func (v vm) command(ctx context.Context, words []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // a command line of engine
	cmd.Env = append(os.Environ(), "WSL_UTF8=1")
	return cmd
}

// run runs a command line, with its output on stderr.
func (v vm) run(ctx context.Context, stdin io.Reader, words ...string) error {
	cmd := v.command(ctx, words)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, v.Stderr, v.Stderr
	return v.failure(ctx, cmd, cmd.Run())
}

// attach runs a command line with the terminal of this process.
func (v vm) attach(ctx context.Context, words ...string) error {
	cmd := v.command(ctx, words)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = v.Stdin, v.Stdout, v.Stderr
	return cmd.Run()
}

// output runs a command line, and returns the last line that it prints: a login may say something before.
func (v vm) output(ctx context.Context, words ...string) (string, error) {
	var out, said bytes.Buffer
	cmd := v.command(ctx, words)
	cmd.Stdout, cmd.Stderr = &out, &said
	err := v.failure(ctx, cmd, cmd.Run())
	if e, ok := errors.AsType[*tool.Error](err); ok {
		e.Message += ": " + strings.TrimSpace(said.String())
	}
	text := strings.TrimSpace(out.String())
	return text[strings.LastIndexByte(text, '\n')+1:], err
}

// failure describes why a command line failed.
func (v vm) failure(ctx context.Context, cmd *exec.Cmd, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return v.notInstalled()
	}
	return &tool.Error{Kind: tool.Failed, Message: fmt.Sprintf("`%s` failed: %v", strings.Join(cmd.Args, " "), err)}
}

func (v vm) notInstalled() error {
	return &tool.Error{Kind: tool.NotFound, Message: "there is no " + v.program + " in PATH", Hint: v.hint}
}

// state returns the state of the machine. A list that fails is empty: wsl.exe fails without any distribution.
func (v vm) state(ctx context.Context) (lifecycle, error) {
	if _, err := exec.LookPath(v.program); err != nil {
		return "", v.notInstalled()
	}
	var outputs [][]byte
	for _, words := range v.lists() {
		out, err := v.command(ctx, words).Output()
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			out = nil
		}
		outputs = append(outputs, out)
	}
	return v.stateOf(outputs), nil
}

// existing returns the state of the machine, or an error if there is none.
func (v vm) existing(ctx context.Context) (lifecycle, error) {
	state, err := v.state(ctx)
	if err == nil && state == absent {
		err = &tool.Error{Kind: tool.NotFound, Message: "there is no virtual machine " + v.address.Host, Hint: "make it: sallyport vm up"}
	}
	return state, err
}
