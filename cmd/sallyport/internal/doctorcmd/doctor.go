package doctorcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/codegen/runtime"
	"sallyport/gateway"
	"sallyport/gateway/catalog"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
)

// Command returns the verb.
func Command(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "check this machine, the settings and every upstream",
		Long: `Doctor checks what sallyport needs (runsc, user namespaces, interpreters, how limits
are enforced), runs a test program in each language, lists the type checkers, reads
the settings, tests the embeddings endpoint if there is one, connects to every
upstream and prepares every environment. Each finding is a line that begins with ok,
warn or FAIL; those that are not ok have a fix.

Exit status: 0 if nothing fails, 1 if something does.`,
		Example: `  sallyport doctor
  sallyport doctor --json | jq -r '.checks[] | select(.ok | not) | .name'`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	a.SandboxFlag(cmd)
	return cmd
}

// finding is one result of doctor.
type finding struct {
	sandbox.Check
	// Stderr is the end of a failed upstream's stderr.
	Stderr string `json:"stderr,omitempty"`
}

// diagnosis is what doctor --json prints.
type diagnosis struct {
	OK     bool      `json:"ok"`
	Checks []finding `json:"checks"`
}

func (a *app) doctor(ctx context.Context, asJSON bool) error {
	d := diagnosis{OK: true, Checks: []finding{}}
	note := func(f finding) error {
		d.OK = d.OK && f.OK
		d.Checks = append(d.Checks, f)
		if asJSON {
			return ctx.Err()
		}
		return errors.Join(a.PrintFinding(f.String()), ctx.Err())
	}
	p := a.Progress("checking", 0)
	err := a.runChecks(ctx, note)
	p.Stop()
	if err != nil {
		return err
	}
	if asJSON {
		if err := a.PrintJSON(d); err != nil {
			return err
		}
	}
	if !d.OK {
		return cli.Status(cli.ExitFailed)
	}
	return nil
}

// runChecks runs the checks one after the other, and passes each finding to note immediately.
func (a *app) runChecks(ctx context.Context, note func(finding) error) (err error) {
	cfg, configErr := a.Load()
	if configErr != nil {
		standard := config.Default()
		cfg = &standard
	}
	opts := sandbox.Options{
		Runsc: cfg.Sandbox.Runsc, Python: cfg.Sandbox.Python, Node: cfg.Sandbox.Node,
		Guest: runtime.Guest(), Logger: a.Logger(slog.LevelError),
	}
	if opts.DebugLog, err = a.RunscLog(); err != nil {
		return err
	}
	for _, check := range a.checkSandboxes(ctx, cfg, opts) {
		if err := note(finding{Check: check}); err != nil {
			return err
		}
	}
	for _, f := range checkTypes(cfg.Sandbox) {
		if err := note(f); err != nil {
			return err
		}
	}
	if err := note(checkConfig(cfg, configErr)); err != nil || configErr != nil {
		return err
	}
	for _, f := range append(checkTexts(cfg), slices.Concat(checkSecrets(cfg), checkIsolation(cfg), checkSections(ctx, cfg), a.checkData(), a.checkAudit(cfg), a.checkRecords(ctx, cfg), a.checkStore(ctx, cfg), a.checkJournals(), a.checkTokens(ctx))...) {
		if err := note(f); err != nil {
			return err
		}
	}
	return a.WithGateway(ctx, gateway.Options{ConnectWait: cli.ConnectTimeout, Fresh: true}, func(ctx context.Context, g *gateway.Gateway) error {
		if err := a.WaitConnected(ctx, g); err != nil {
			return err
		}
		for _, up := range g.Catalog.Upstreams() {
			if err := note(checkUpstream(up)); err != nil {
				return err
			}
		}
		return checkEnvironments(ctx, g, cfg, note)
	})
}

// checkSandboxes checks the machine that programs run on, which may be a remote one.
func (a *app) checkSandboxes(ctx context.Context, cfg *config.Config, opts sandbox.Options) []sandbox.Check {
	if cfg.Sandbox.Remote == "" {
		return sandbox.Checks(ctx, opts)
	}
	if cfg.Sandbox.Remote == config.RemoteWorkers {
		return []sandbox.Check{checkWorkers(ctx, cfg)}
	}
	check := sandbox.Check{Name: "remote", Fix: "make sure that ssh logs in there without a prompt and finds sallyport (docs/how-to/remote-sandboxes.md);\nof a virtual machine: sallyport vm up"}
	version, found, took, err := a.Worker(ctx, cfg.Sandbox.Remote)
	if err != nil {
		check.Detail = sanitize.Line(err.Error(), 400)
		return []sandbox.Check{check}
	}
	check = sandbox.Check{Name: "remote", OK: true, Detail: fmt.Sprintf("%s answered in %d ms, sallyport %s", cfg.Sandbox.Remote, took.Milliseconds(), version)}
	all := []sandbox.Check{check}
	for _, there := range found {
		there.Name = "remote " + there.Name
		all = append(all, there)
	}
	return all
}

// checkSections checks sections of the settings other than upstreams.
func checkSections(ctx context.Context, cfg *config.Config) (found []finding) {
	if cfg.HTTP.Problem != "" {
		check := sandbox.Check{Name: "http", OK: true, Warn: true, Detail: cfg.HTTP.Problem, Fix: "correct it before you use serve --http; nothing else needs it"}
		found = append(found, finding{Check: check})
	}
	if e := cfg.Search.Embeddings; e != nil {
		found = append(found, checkEmbeddings(ctx, *e))
	}
	if r := cfg.Privacy.Recognizer; r != nil {
		found = append(found, checkRecognizer(ctx, *r))
	}
	return slices.Concat(found, checkPolicy(ctx, cfg), checkWorkflows(cfg))
}

func checkConfig(cfg *config.Config, err error) finding {
	check := sandbox.Check{Name: "settings"}
	if err != nil {
		check.Detail = err.Error()
		check.Fix = "correct the file; the upstreams were not tried"
		if _, wrong := errors.AsType[*config.Error](err); !wrong {
			check.Fix = "run sallyport init, or name a file with --config; the upstreams were not tried"
		}
		return finding{Check: check}
	}
	enabled := 0
	for _, up := range cfg.Upstreams {
		if !up.Disabled {
			enabled++
		}
	}
	check.OK, check.Detail = true, fmt.Sprintf("%s, %s, %d disabled", cfg.Path, cli.Count(enabled, "upstream"), len(cfg.Upstreams)-enabled)
	if enabled == 0 {
		check.Warn, check.Fix = true, "add an upstream to "+cfg.Path+"; without one there are no tools"
	}
	return finding{Check: check}
}

// checkTexts returns a finding for each text of the settings that is probably a mistake.
func checkTexts(cfg *config.Config) (found []finding) {
	for _, w := range cfg.Warnings {
		what, fix, _ := strings.Cut(w.Message, "; ")
		found = append(found, finding{Check: sandbox.Check{Name: "settings", OK: true, Warn: true, Detail: fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, what), Fix: fix}})
	}
	return found
}

func checkUpstream(up catalog.Upstream) finding {
	check := sandbox.Check{Name: "upstream " + up.ID}
	if why := cli.UpstreamProblem(up); why != "" {
		why, _, _ = strings.Cut(strings.TrimPrefix(why, "cannot connect to upstream "+up.ID+": "), ": run `sallyport auth login ")
		check.Detail, check.Fix = why, catalog.Remedy(cli.UpstreamProblem(up))
		return finding{Check: check, Stderr: cli.LastLines(up.State.Stderr)}
	}
	check.OK = true
	check.Detail = fmt.Sprintf("%s from %s, protocol %s", cli.Count(up.State.Tools, "tool"), serverLabel(up), sanitize.Line(up.State.Protocol, 20))
	if up.Held > 0 {
		check.Detail += fmt.Sprintf(", %d quarantined", up.Held)
		check.Warn, check.Fix = true, "look at it with `sallyport upstreams review "+up.Name+"`"
	} else if up.State.Tools == 0 {
		check.Warn, check.Fix = true, "it lists no tools; if that is expected, set disabled: true"
	}
	return finding{Check: check}
}

func serverLabel(up catalog.Upstream) string {
	name := sanitize.Line(up.State.ServerName+" "+up.State.ServerVersion, 80)
	if name == "" {
		return "a server without a name"
	}
	return name
}

// String formats the finding as text: a line, with its stderr and fix below it.
func (f finding) String() string {
	verdict := "FAIL"
	switch {
	case f.OK && f.Warn:
		verdict = "warn"
	case f.OK:
		verdict = "ok"
	}
	const indent = "\n      "
	text := fmt.Sprintf("%-4s  %s: %s", verdict, f.Name, strings.ReplaceAll(f.Detail, "\n", indent))
	if f.Stderr != "" {
		text += indent + "stderr: " + strings.ReplaceAll(f.Stderr, "\n", indent+"        ")
	}
	if f.Fix != "" && (!f.OK || f.Warn) {
		text += indent + "fix: " + strings.ReplaceAll(f.Fix, "\n", indent+"     ")
	}
	return text
}
