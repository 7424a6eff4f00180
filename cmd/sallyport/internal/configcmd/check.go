package configcmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
)

// Finding is an error or a warning about the settings. Fields are added, never changed.
type findingJSON struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// checkJSON is what check --json prints.
type checkJSON struct {
	Path     string        `json:"path"`
	OK       bool          `json:"ok"`
	Errors   []findingJSON `json:"errors"`
	Warnings []findingJSON `json:"warnings"`
}

func checkCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [flags] [FILE]",
		Short: "say all errors of the settings",
		Long: `Check loads FILE, or the settings that every command reads, and prints all errors
with their lines and how to correct them. Then it warns of texts that load but are
probably mistakes, and of variables that are not set. It starts nothing: doctor also
tries the upstreams.

Exit status: 0 if there are no errors (warnings do not count), 1 if there are.`,
		Example: `  sallyport config check
  sallyport config check upstreams.yaml --json`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return a.check(args, asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) check(args []string, asJSON bool) error {
	path, data, err := a.read(args)
	if err != nil {
		return err
	}
	c, err := config.Sources{Getenv: a.Env, AllErrors: true}.Parse(path, data)
	result := checkJSON{Path: path, OK: err == nil, Errors: findings(err)}
	if c != nil {
		result.Warnings = warnings(c)
	}
	if asJSON {
		return errors.Join(a.PrintJSON(result), failed(result.OK))
	}
	if err != nil {
		a.Report(err)
		a.offerMigration(path, data)
		return failed(false)
	}
	for _, w := range c.Warnings {
		a.Say(fmt.Sprintf("%s:%d:%d: warning: %s\n%s", w.File, w.Line, w.Column, w.Message, w.Snippet))
	}
	for _, w := range unset(c) {
		a.Say(path + ": warning: " + w)
	}
	return a.Print(summary(path, c))
}

// failed returns the exit status of settings with errors.
func failed(ok bool) error {
	if ok {
		return nil
	}
	return cli.Status(cli.ExitFailed)
}

// offerMigration names the command that corrects some of the errors.
func (a *app) offerMigration(path string, data []byte) {
	if _, changes, err := settingsfile.Migrate(path, data); err == nil && len(changes) > 0 {
		a.Say(fmt.Sprintf("sallyport config migrate %s corrects %d of these", path, len(changes)))
	}
}

func summary(path string, c *config.Config) string {
	count := fmt.Sprintf("%d upstreams", len(c.Upstreams))
	if len(c.Upstreams) == 1 {
		count = "1 upstream"
	}
	text := fmt.Sprintf("%s: no errors, %s", path, count)
	if n := len(warnings(c)); n > 0 {
		text += fmt.Sprintf(", warnings: %d", n)
	}
	return text
}

// findings takes a joined error apart.
func findings(err error) (all []findingJSON) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, findings(e)...)
		}
		return all
	}
	if e, ok := errors.AsType[*config.Error](err); ok {
		return []findingJSON{{e.Line, e.Column, e.Message}}
	}
	if err != nil {
		all = append(all, findingJSON{Message: sanitize.Line(err.Error(), 300)})
	}
	return all
}

func warnings(c *config.Config) (all []findingJSON) {
	for _, w := range c.Warnings {
		all = append(all, findingJSON{w.Line, w.Column, w.Message})
	}
	for _, message := range unset(c) {
		all = append(all, findingJSON{Message: message})
	}
	return all
}

// unset returns what references without a value stop.
func unset(c *config.Config) (all []string) {
	for _, u := range c.Upstreams {
		if u.Problem != "" && !u.Disabled {
			all = append(all, fmt.Sprintf("upstream %q is not started: %s", u.Name, u.Problem))
		}
	}
	if e := c.Search.Embeddings; e != nil && e.Problem != "" {
		all = append(all, "search.embeddings is not used: "+e.Problem)
	}
	if c.HTTP.Problem != "" {
		first, _, _ := strings.Cut(c.HTTP.Problem, "\n")
		all = append(all, "serve --http does not start: "+first)
	}
	return all
}
