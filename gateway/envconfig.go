package gateway

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
)

// configPatience is how long a question about an environment waits for it and its interpreters.
const configPatience = 10 * time.Second

// EnvironmentConfig tells which environment programs of the client's session run in, what is in
// it, and what bounds them. It is short text for a model; errors are *tool.Error.
func (g *Gateway) EnvironmentConfig(ctx context.Context) (string, error) {
	name, settings, known, err := g.environments.find(g.environmentOf(ctx, ""))
	if err != nil {
		return "", err
	}
	all, limits := g.cfg.Load().Environments, g.limits(execution.Program{})
	var b strings.Builder
	fmt.Fprintf(&b, "environment: %s\n", named(name, all))
	b.WriteString(g.insideOf(ctx, name, known))
	if settings.Install {
		b.WriteString("install_dependencies adds packages\n")
	}
	fmt.Fprintf(&b, "one program: %s, %v memory, %s of processors, %d processes, %v of output\n", span(limits.Timeout), config.Size(limits.Memory),
		span(limits.CPU), limits.Processes, config.Size(limits.Output))
	if used, err := g.Workspaces.Usage(ctx, limits); err == nil && used != "" {
		b.WriteString(used + "\n")
	}
	if len(environmentNames(all)) > 1 {
		b.WriteString(listOf(all) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// insideOf tells what is in an environment, or why nothing can be told yet.
func (g *Gateway) insideOf(ctx context.Context, name string, known bool) string {
	ctx, cancel := context.WithTimeout(ctx, configPatience)
	defer cancel()
	made := &making{}
	if known {
		made = g.environments.begin(g.environments.recipe(tool.Principal(ctx), name))
		if err := made.wait(ctx, name); err != nil {
			return plain.Line(tool.AsError(err).Error(), 400) + "\n"
		}
	}
	return g.contents(ctx, made) + "\n"
}

// CheckEnvironment makes one of the settings' environments, unless it is there already, and tells
// the operator what is in it, or why it cannot be made.
func (g *Gateway) CheckEnvironment(ctx context.Context, name string) (string, error) {
	name, _, known, err := g.environments.find(name)
	if err != nil {
		return "", err
	}
	made := &making{}
	if known {
		made = g.environments.begin(g.environments.recipe("", name))
		if err := made.wait(ctx, name); err != nil {
			return "", cmp.Or(made.failure(), err)
		}
	}
	return g.contents(ctx, made), nil
}

// contents are the interpreters and how many packages there are for each.
func (g *Gateway) contents(ctx context.Context, made *making) string {
	var parts []string
	for _, i := range []sandbox.Interpreter{sandbox.Python, sandbox.Node} {
		part := "TypeScript"
		if i == sandbox.Python {
			part = "Python"
		}
		if v := g.environments.version(ctx, i, made.key, g.limits(execution.Program{})); v != "" {
			part += " " + v
		}
		if n, err := deps.List(i, made.sites[i]...); err == nil {
			part += fmt.Sprintf(", %d packages", len(n))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// versionKey is an interpreter of a sandbox's environment.
type versionKey struct {
	interpreter sandbox.Interpreter
	key         string
}

// maxVersions is how many interpreters are remembered.
const maxVersions = 1000

// version asks an interpreter for its version, once, in a sandbox; "" where it cannot be asked.
func (e *environments) version(ctx context.Context, i sandbox.Interpreter, key string, limits sandbox.Limits) string {
	e.mu.Lock()
	version, ok := e.versions[versionKey{i, key}]
	e.mu.Unlock()
	if ok {
		return version
	}
	job := sandbox.Job{ID: execution.NewID(), Interpreter: i, Environment: key, Limits: limits, Code: "import platform; platform.python_version()"}
	if i == sandbox.Node {
		job.Code = `export default "on node " + process.versions.node`
	}
	outcome, err := e.runner.run(ctx, job, nobody{})
	if err != nil || outcome.Value == nil {
		return ""
	}
	version = plain.Line(strings.Trim(outcome.Value.Text, `"`), 40)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.versions == nil || len(e.versions) == maxVersions {
		e.versions = map[versionKey]string{}
	}
	e.versions[versionKey{i, key}] = version
	return version
}

// nobody is who calls tools from a program of ours that calls none.
type nobody struct{}

// Call implements [bridge.Caller].
func (nobody) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, &tool.Error{Kind: tool.Denied, Message: "this program calls no tools"}
}

// span writes a duration without the zeros at its end.
func span(d time.Duration) string {
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
}
