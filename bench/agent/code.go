package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
)

// code is `sallyport serve`, with its own folder and the settings of a new user.
type code struct {
	session    *session
	catalogues *catalogueServer
	// dir is its own folder, shared the one for snapshots.
	dir, shared string
}

// connectTimeout is the timeout for the upstreams to connect.
const connectTimeout = 2 * time.Minute

func openCode(ctx context.Context, setup Setup, servers []suite.Server) (_ *code, err error) {
	c := &code{shared: setup.Cache}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if err = c.prepare(setup, servers, nil); err != nil {
		return c, fmt.Errorf("open sallyport: %w", err)
	}
	if c.session, err = connect(ctx, &mcp.CommandTransport{Command: c.command(ctx, setup.Sallyport), TerminateDuration: 20 * time.Second}); err != nil {
		return c, fmt.Errorf("start sallyport: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return c, c.settle(ctx, setup.names())
}

// snapshots is where sallyport keeps started interpreters.
func (c *code) snapshots() string { return filepath.Join(c.dir, "cache", "sallyport", "snapshots") }

// prepare makes the folder: settings, with more of them, and a cache with the shared snapshots in it.
func (c *code) prepare(setup Setup, servers []suite.Server, more map[string]any) (err error) {
	if c.dir, err = os.MkdirTemp("", "sp-bench-"); err != nil {
		return err
	}
	if c.catalogues, err = serveCatalogues(setup.More); err != nil {
		return err
	}
	for _, dir := range []string{c.snapshots(), filepath.Join(c.dir, "run")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if c.shared != "" {
		if err := linkSnapshots(c.shared, c.snapshots()); err != nil {
			return err
		}
	}
	all := c.settings(setup, servers)
	maps.Copy(all, more)
	settings, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.config(), settings, 0o600) // JSON is YAML
}

func (c *code) config() string { return filepath.Join(c.dir, "upstreams.yaml") }

// settings are those of a new user, with three exceptions, so that a task costs the same whatever ran before and
// whatever is installed: nothing is learned from calls and results, as if each task were the first after the
// installation (what is learned improves answers, but does not lengthen them), and no type checker is used.
func (c *code) settings(setup Setup, servers []suite.Server) map[string]any {
	upstreams := map[string]any{}
	for _, s := range servers {
		upstreams[s.Name] = map[string]any{
			"description": s.Description, "command": s.Command, "args": literals(s.Args...), "env": literalValues(s.Env), "cwd": literals(setup.World.Dir)[0],
		}
	}
	for _, more := range setup.More {
		entry := map[string]any{"url": c.catalogues.base + more.Name}
		if more.Description != "" {
			entry["description"] = more.Description
		}
		upstreams[more.Name] = entry
	}
	return map[string]any{
		"upstreams": upstreams, "observe": false, "search": map[string]any{"learn": false},
		"sandbox": map[string]any{"pyright": "none-is-looked-for", "tsc": "none-is-looked-for"},
	}
}

// literals escapes dollar signs, which settings would expand.
func literals(texts ...string) []string {
	all := []string{}
	for _, text := range texts {
		all = append(all, strings.ReplaceAll(text, "$", "$$"))
	}
	return all
}

func literalValues(values map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range values {
		all[name] = literals(value)[0]
	}
	return all
}

func (c *code) command(ctx context.Context, binary string) *exec.Cmd {
	command := exec.CommandContext(context.WithoutCancel(ctx), binary, "--config", c.config(), "--log-level", "error", "serve")
	command.Dir, command.Env = c.dir, c.environment()
	return command
}

func (c *code) environment() []string {
	return append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(c.dir, "cache"), "XDG_DATA_HOME="+filepath.Join(c.dir, "data"),
		"XDG_RUNTIME_DIR="+filepath.Join(c.dir, "run"), "SALLYPORT_CONFIG=")
}

// settle waits until search finds the tools of all upstreams, so that the first searches do not depend on startup.
func (c *code) settle(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := c.await(ctx, name); err != nil {
			return fmt.Errorf("settle sallyport: %w", err)
		}
	}
	return nil
}

func (c *code) await(ctx context.Context, name string) error {
	list, err := marshal(map[string]string{"upstream": name, "detail": "names"}) // a signature that is shown is not shown again
	if err != nil {
		return err
	}
	for {
		r, err := c.session.call(ctx, "search_tools", list)
		if err != nil {
			return err
		}
		if !r.Error && !strings.HasPrefix(r.Text, "No tools.") && !strings.Contains(r.Text, "(not searched") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("upstream %s is not there: %.500s", name, r.Text)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Instructions implements [Tools].
func (c *code) Instructions() []string {
	if text := c.session.InitializeResult().Instructions; text != "" {
		return []string{text}
	}
	return nil
}

// Definitions implements [Tools].
func (c *code) Definitions() (defs []tokencount.Definition) {
	for _, t := range c.session.tools {
		defs = append(defs, t.definition(toolPrefix+t.Name))
	}
	return defs
}

// toolPrefix is the prefix of our tools' names, as clients add it for each server.
const toolPrefix = "sallyport__"

// executionID matches the execution id in an answer's hint, the only part that differs between runs.
var executionID = regexp.MustCompile(`\be-[a-z2-7]{12}\b`)

// Call implements [Tools]. Ids of executions, which are random, are replaced by one of the same shape.
func (c *code) Call(ctx context.Context, call tokencount.Call) (tokencount.Result, error) {
	r, err := c.session.call(ctx, strings.TrimPrefix(call.Tool, toolPrefix), call.Args)
	r.Text = executionID.ReplaceAllString(r.Text, "e-k3vq7m2yhx4d")
	return r, err
}

// Close implements [Open].
func (c *code) Close() error {
	var errs []error
	if c.session != nil {
		errs = append(errs, c.session.Close())
	}
	if c.dir != "" && c.shared != "" {
		errs = append(errs, linkSnapshots(c.snapshots(), c.shared))
	}
	if c.catalogues != nil {
		errs = append(errs, c.catalogues.close())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}
