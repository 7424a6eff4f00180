package workflowcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/cmd/sallyport/internal/engine"
	"sallyport/gateway"
	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/suggest"
	"sallyport/internal/yamlstrict"
)

func workflowLintCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "lint [flags] [FILE|NAME...]",
		Short: "check workflows for errors before they run",
		Long: `Lint checks the definitions in FILE, those called NAME, or all in the folder of
workflows: syntax, misspelt names and outputs, arguments that a tool does not
accept. It uses the cached tool definitions; upstreams that are not cached are
started.

Each finding has its position, and a suggestion if there is one. Exit status: 0 if
there are no errors (warnings do not count), 1 if there are.`,
		Example: `  sallyport workflow lint
  sallyport workflow lint workflows/digest.yaml --json`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.lintWorkflows(cmd.Context(), args, asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func workflowSchemaCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "print the JSON Schema of definitions, for editors",
		Long: `Schema prints the JSON Schema (2020-12) of definitions. Editors that know the YAML
language server check and complete a file that begins with the comment
# yaml-language-server: $schema=PATH`,
		Example: "  sallyport workflow schema > workflow.schema.json",
		Args:    cli.NoArguments,
		RunE:    func(*cobra.Command, []string) error { return cli.Write(a.Stdout, string(spec.Schema())) },
	}
}

// findingJSON is one finding of lint --json. Fields are added, never changed.
type findingJSON struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Severity is error or warning.
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

// lintResult collects findings.
type lintResult struct {
	texts    []string
	findings []findingJSON
	errors   int
	warnings int
}

func (l *lintResult) add(e *yamlstrict.Error, severity lint.Severity, text string) {
	l.findings = append(l.findings, findingJSON{e.File, e.Line, e.Column, string(severity), e.Message})
	l.texts = append(l.texts, text)
	if severity == lint.Error {
		l.errors++
	} else {
		l.warnings++
	}
}

// addError adds the errors of a file that cannot be read.
func (l *lintResult) addError(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			l.addError(one)
		}
		return
	}
	e, ok := errors.AsType[*yamlstrict.Error](err)
	if !ok {
		e = &yamlstrict.Error{Message: err.Error()}
	}
	l.add(e, lint.Error, err.Error())
}

func (a *app) lintWorkflows(ctx context.Context, files []string, asJSON bool) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	l := &lintResult{}
	all, faults := spec.LoadDir(cfg.Workflows.Path)
	checked := all
	if len(files) > 0 {
		checked, faults = readFiles(files, engine.ByName(all))
	}
	for _, fault := range faults {
		l.addError(fault)
	}
	if len(checked) > 0 {
		if err := a.checkDefinitions(ctx, l, all, checked); err != nil {
			return err
		}
	}
	if err := a.printLinting(l, cli.Count(len(checked)+len(faults), "workflow"), asJSON); err != nil {
		return err
	}
	if l.errors > 0 {
		return cli.Status(cli.ExitFailed)
	}
	return nil
}

// readFiles reads definitions by file, or by the name of a known workflow.
func readFiles(files []string, known map[string]*spec.Definition) (read []*spec.Definition, faults []error) {
	for _, file := range files {
		if d := known[file]; d != nil {
			file = d.Path
		}
		d, err := spec.Load(file)
		if near := suggest.Of(file, slices.Sorted(maps.Keys(known))); errors.Is(err, fs.ErrNotExist) && near != "" && filepath.Ext(file) == "" {
			err = fmt.Errorf("there is no workflow %s; did you mean %q?", cli.Cell(file, 64), near)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		read = append(read, d)
	}
	return read, faults
}

// checkDefinitions checks definitions against the tools of the upstreams.
func (a *app) checkDefinitions(ctx context.Context, l *lintResult, all, checked []*spec.Definition) error {
	return a.WithGateway(ctx, gateway.Options{NoPool: true, Purpose: "lint"}, func(ctx context.Context, g *gateway.Gateway) error {
		if err := a.WaitConnected(ctx, g); err != nil {
			return err
		}
		cfg, err := a.Load()
		if err != nil {
			return err
		}
		opts := engine.LintOptions(ctx, cfg, g, append(slices.Clone(all), checked...))
		for _, d := range checked {
			for _, f := range lint.Check(d, opts) {
				l.add(f.Error, f.Severity, f.String())
			}
		}
		return nil
	})
}

func (a *app) printLinting(l *lintResult, looked string, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(struct {
			OK       bool          `json:"ok"`
			Findings []findingJSON `json:"findings"`
		}{l.errors == 0, append([]findingJSON{}, l.findings...)})
	}
	if len(l.texts) > 0 {
		if err := a.Print(strings.Join(l.texts, "\n")); err != nil {
			return err
		}
	}
	a.Say(fmt.Sprintf("%s, %s, %s", looked, cli.Count(l.errors, "error"), cli.Count(l.warnings, "warning")))
	return nil
}

// loadDefinitions returns the definitions that can be read; none if the settings cannot be read.
func (a *app) loadDefinitions() []*spec.Definition {
	cfg, err := a.Load()
	if err != nil {
		return nil
	}
	all, _ := spec.LoadDir(cfg.Workflows.Path)
	return all
}
