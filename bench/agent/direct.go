package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
)

// source is a server, or a catalogue, which has no session.
type source struct {
	name, about  string
	instructions string
	tools        []listedTool
	session      *session
}

// direct shows all tools of all sources; each call goes to the tool's server.
type direct struct {
	sources []source
	defs    []tokencount.Definition
	callees map[string]callee
}

// callee is a tool of a session; of none, if it is a catalogue's.
type callee struct {
	session *session
	wire    string
}

func openDirect(ctx context.Context, setup Setup, servers []suite.Server) (*direct, error) {
	d := &direct{callees: map[string]callee{}, sources: make([]source, len(servers))}
	var wait sync.WaitGroup
	errs := make([]error, len(servers))
	for i, server := range servers {
		wait.Go(func() { d.sources[i], errs[i] = open(ctx, setup.World.Dir, server) })
	}
	wait.Wait()
	for _, c := range setup.More {
		s, err := c.source()
		errs = append(errs, err)
		d.sources = append(d.sources, s)
	}
	for _, s := range d.sources {
		for _, t := range s.tools {
			name := suite.ToolName(s.name + "." + t.Name)
			d.defs = append(d.defs, t.definition(name))
			d.callees[name] = callee{s.session, t.Name}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func open(ctx context.Context, dir string, server suite.Server) (source, error) {
	command := exec.CommandContext(context.WithoutCancel(ctx), server.Command, server.Args...)
	command.Dir, command.Env = dir, inheritedEnv()
	for name, value := range server.Env {
		command.Env = append(command.Env, name+"="+value)
	}
	s, err := connect(ctx, &mcp.CommandTransport{Command: command, TerminateDuration: grace})
	if err != nil {
		return source{}, fmt.Errorf("start %s: %w", server.Name, err)
	}
	hello := s.InitializeResult()
	title := cmp.Or(hello.ServerInfo.Title, hello.ServerInfo.Name)
	return source{server.Name, title + " " + server.Description, hello.Instructions, s.tools, s}, nil
}

// grace is how long a server may take to exit after its input ends, before it gets a signal: some never exit by
// themselves.
const grace = 500 * time.Millisecond

// inheritedEnv returns the environment that Sallyport, too, passes to upstreams: no keys, since one of the servers has a
// tool that prints its environment.
func inheritedEnv() (env []string) {
	for _, name := range []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "SHELL", "TERM"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Instructions implements [Tools].
func (d *direct) Instructions() (all []string) {
	for _, s := range d.sources {
		if s.instructions != "" {
			all = append(all, s.instructions)
		}
	}
	return all
}

// Definitions implements [Tools].
func (d *direct) Definitions() []tokencount.Definition { return d.defs }

// Call implements [Tools].
func (d *direct) Call(ctx context.Context, call tokencount.Call) (tokencount.Result, error) {
	to, known := d.callees[call.Tool]
	switch {
	case !known:
		return unknown(call.Tool), nil
	case to.session == nil:
		return tokencount.Result{Text: notConnected, Error: true}, nil
	}
	return to.session.call(ctx, to.wire, call.Args)
}

// notConnected is the result of the tools of catalogues.
const notConnected = "The server of this tool is not connected."

func unknown(name string) tokencount.Result {
	return tokencount.Result{Text: "No such tool available: " + name, Error: true}
}

// Close implements [Open].
func (d *direct) Close() error {
	var wait sync.WaitGroup
	errs := make([]error, len(d.sources))
	for i, s := range d.sources {
		if s.session != nil {
			wait.Go(func() { errs[i] = ignoreExit(s.session.Close()) })
		}
	}
	wait.Wait()
	return errors.Join(errs...)
}

// ignoreExit ignores the exit status of a server, and that it has exited before it got a signal.
func ignoreExit(err error) error {
	if _, ended := errors.AsType[*exec.ExitError](err); ended || errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
