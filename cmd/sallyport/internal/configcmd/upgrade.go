package configcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
	"sallyport/internal/store"
)

// upgradeJSON is what upgrade --check --json prints. Fields are added, never changed.
type upgradeJSON struct {
	Version  string       `json:"version"`
	Settings settingsJSON `json:"settings"`
	Records  recordsJSON  `json:"records"`
}

// settingsJSON is about the settings: the changes that config migrate would make, and the errors that it would leave.
type settingsJSON struct {
	Path    string       `json:"path,omitempty"`
	Changes []changeJSON `json:"changes"`
	Errors  []string     `json:"errors"`
}

type changeJSON struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

// recordsJSON is about the data directory: the version of its records, 0 for none, and that of this release.
type recordsJSON struct {
	Path    string `json:"path,omitempty"`
	Found   int    `json:"found"`
	Current int    `json:"current"`
	Error   string `json:"error,omitempty"`
}

// UpgradeCommand returns the verb upgrade.
func UpgradeCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var check, asJSON bool
	cmd := &cobra.Command{
		Use:   "upgrade --check [flags]",
		Short: "say what this release changes of settings and data",
		Long: `Upgrade --check says what this release would change of the settings and of the data
directory that an earlier release left. Run it with the new binary before you
replace the old one. It changes nothing, and it installs nothing.

Exit status: 0 if this release reads both, 1 if it does not.`,
		Example: "  ./sallyport-new upgrade --check\n  sallyport backup before.tar.gz",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !check {
				return cli.Misuse(cmd, "upgrade installs nothing: install the new release, and check it with --check")
			}
			return a.upgrade(asJSON)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "say what would change; change nothing")
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) upgrade(asJSON bool) error {
	settings, err := a.settingsChanges()
	if err != nil {
		return err
	}
	result := upgradeJSON{cli.BuildVersion(), settings, a.recordsChanges()}
	ok := len(settings.Errors) == 0 && result.Records.Error == ""
	if asJSON {
		return errors.Join(a.PrintJSON(result), failed(ok))
	}
	return errors.Join(a.Print(settings.String()+"\n"+result.Records.String()), failed(ok))
}

// settingsChanges says what config migrate would do with the settings, and which errors they would still have.
func (a *app) settingsChanges() (s settingsJSON, err error) {
	path, data, err := a.read(nil)
	if errors.Is(err, fs.ErrNotExist) && a.ConfigPath == "" {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Path = path
	made, changes, err := settingsfile.Migrate(path, data)
	for _, c := range changes {
		s.Changes = append(s.Changes, changeJSON(c))
	}
	if err == nil {
		_, err = config.Sources{Getenv: a.Env, AllErrors: true}.Parse(path, made)
	}
	for _, f := range findings(err) {
		s.Errors = append(s.Errors, f.String())
	}
	return s, nil
}

// String returns the message with its position in the file.
func (f findingJSON) String() string {
	if f.Line == 0 {
		return f.Message
	}
	return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message)
}

// String returns the same for people.
func (s settingsJSON) String() string {
	if s.Path == "" {
		return "settings: none"
	}
	text := fmt.Sprintf("settings: %s: nothing changes", s.Path)
	if len(s.Changes) > 0 {
		text = fmt.Sprintf("settings: %s: sallyport config migrate changes", s.Path)
	}
	for _, c := range s.Changes {
		text += fmt.Sprintf("\n  %d: %s", c.Line, c.Text)
	}
	for _, e := range s.Errors {
		text += "\n  error: " + e
	}
	return text
}

func (a *app) recordsChanges() (r recordsJSON) {
	dir := a.DataDir()
	if dir == "" {
		return r
	}
	r.Path = dir
	found, current, err := store.Version(filepath.Join(dir, cli.RecordsFolder))
	r.Found, r.Current = found, current
	if err != nil {
		r.Error = sanitize.Line(err.Error(), 300)
	}
	return r
}

// String returns the same for people.
func (r recordsJSON) String() string {
	switch {
	case r.Error != "":
		return "data: " + r.Error
	case r.Found == 0:
		return "data: none"
	case r.Found < r.Current:
		return fmt.Sprintf("data: %s: the first start migrates version %d of the records to %d; earlier releases cannot read them then. Make a backup before: sallyport backup FILE",
			r.Path, r.Found, r.Current)
	}
	return fmt.Sprintf("data: %s: nothing changes", r.Path)
}
