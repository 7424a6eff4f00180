package environments

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
)

// configTimeout is how long a description of an environment waits for it and its interpreters.
const configTimeout = 10 * time.Second

// EnvironmentConfig describes, for a model, the environment of the client's session, its contents
// and the limits of programs. Errors are *tool.Error.
func (e *Environments) EnvironmentConfig(ctx context.Context) (string, error) {
	name, settings, known, err := e.Find(e.ResolveName(ctx, ""))
	if err != nil {
		return "", err
	}
	all, limits := e.opts.Settings.Load().Environments, e.limits()
	var b strings.Builder
	fmt.Fprintf(&b, "environment: %s\n", describe(name, all))
	b.WriteString(e.describeContents(ctx, name, known))
	if settings.Install {
		b.WriteString("install_dependencies adds packages\n")
	}
	fmt.Fprintf(&b, "one program: %s, %v memory, %s of processors, %d processes, %v of output\n", formatSpan(limits.Timeout), config.Size(limits.Memory),
		formatSpan(limits.CPU), limits.Processes, config.Size(limits.Output))
	if used, err := e.opts.Usage(ctx, limits); err == nil && used != "" {
		b.WriteString(used + "\n")
	}
	if len(environmentNames(all)) > 1 {
		b.WriteString(listOf(all) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// describeContents describes the contents of an environment, or why they are not known yet.
func (e *Environments) describeContents(ctx context.Context, name string, known bool) string {
	ctx, cancel := context.WithTimeout(ctx, configTimeout)
	defer cancel()
	made := &building{}
	if known {
		made = e.startBuild(e.recipe(tool.Principal(ctx), name))
		if err := made.wait(ctx, name); err != nil {
			return sanitize.Line(tool.AsError(err).Error(), 400) + "\n"
		}
	}
	return e.contents(ctx, made) + "\n"
}

// CheckEnvironment builds one of the settings' environments, unless it exists, and describes its
// contents for the operator. The error says why it cannot be built.
func (e *Environments) CheckEnvironment(ctx context.Context, name string) (string, error) {
	if settings, _ := e.settings(name); settings.Python.HasPattern() {
		found, err := filepath.Glob(settings.Python.Base)
		return sanitize.Count(len(found), "folder") + " for the pattern", err
	}
	name, _, known, err := e.Find(name)
	if err != nil {
		return "", err
	}
	made := &building{}
	if known {
		made = e.startBuild(e.recipe("", name))
		if err := made.wait(ctx, name); err != nil {
			return "", cmp.Or(made.failure(), err)
		}
	}
	if known && onWorkers(e) {
		return checkElsewhere(ctx, e, made)
	}
	return e.contents(ctx, made), nil
}

// contents describes the interpreters and the number of packages of each.
func (e *Environments) contents(ctx context.Context, made *building) string {
	var parts []string
	for _, i := range []sandbox.Interpreter{sandbox.Python, sandbox.Node} {
		part := "TypeScript"
		if i == sandbox.Python {
			part = "Python"
		}
		if v := e.version(ctx, i, baseKey(made), e.limits()); v != "" {
			part += " " + v
		}
		if n, err := deps.List(i, made.sites[i]...); err == nil && !onWorkers(e) {
			part += fmt.Sprintf(", %d packages", len(n))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// versionKey identifies an interpreter of a sandbox environment.
type versionKey struct {
	interpreter sandbox.Interpreter
	key         string
}

// maxVersions is the maximum number of cached versions.
const maxVersions = 1000

// version returns the version of an interpreter, which it runs in a sandbox once; "" if that fails.
func (e *Environments) version(ctx context.Context, i sandbox.Interpreter, key string, limits sandbox.Limits) string {
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
	outcome, err := e.opts.Sandboxes.Run(ctx, job, toolcall.NoTools{})
	if err != nil || outcome.Value == nil {
		return ""
	}
	version = sanitize.Line(strings.Trim(outcome.Value.Text, `"`), 40)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.versions == nil || len(e.versions) == maxVersions {
		e.versions = map[versionKey]string{}
	}
	e.versions[versionKey{i, key}] = version
	return version
}

// formatSpan formats a duration without trailing zero units.
func formatSpan(d time.Duration) string {
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
}
