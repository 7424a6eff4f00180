package auditcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/audit"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// logFilter selects records; its zero value selects all.
type logFilter struct {
	since                          string
	execution, principal, decision string
	tools, kinds                   []string
}

func (f *logFilter) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.since, "since", "", "from `WHEN` on: a while ago (90m, 12h, 7d) or a time (2026-11-22,\n2026-11-22T14:00:00Z)")
	flags.StringVar(&f.execution, "execution", "", "of the execution `ID`")
	flags.StringVar(&f.principal, "principal", "", "of `NAME`, such as token:ci")
	flags.StringVar(&f.decision, "decision", "", "calls that were `DECIDED` so: allow, deny, ask")
	flags.StringSliceVar(&f.tools, "tool", nil, "calls of tools that `GLOB` names, such as \"github.*\"")
	flags.StringSliceVar(&f.kinds, "kind", nil, "of `KIND`, such as call, login.refused; execution.* is both kinds")
	cli.CompleteFlag(cmd, "decision", "allow", "deny", "ask")
	cli.CompleteFlag(cmd, "kind", audit.Kinds()...)
}

// check returns an error for a filter that no record can match.
func (f *logFilter) check() error {
	for _, kind := range f.kinds {
		if !slices.ContainsFunc(audit.Kinds(), func(k string) bool { return matchGlob(kind, k) }) {
			hint := "the kinds are " + strings.Join(audit.Kinds(), ", ")
			if near := suggest.Of(kind, audit.Kinds()); near != "" {
				hint = "did you mean " + near + "?"
			}
			return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown kind %.40q", kind), Hint: hint}
		}
	}
	if f.decision == "denied" {
		f.decision = "deny"
	}
	_, err := f.startTime(time.Now())
	return err
}

func matchGlob(glob, text string) bool {
	ok, err := path.Match(glob, text)
	return err == nil && ok
}

// startTime returns the time of the first selected record, the zero time for all.
func (f *logFilter) startTime(now time.Time) (time.Time, error) {
	if f.since == "" {
		return time.Time{}, nil
	}
	var days int
	if n, err := fmt.Sscanf(f.since, "%dd", &days); n == 1 && err == nil && f.since == fmt.Sprintf("%dd", days) && days >= 0 {
		return now.AddDate(0, 0, -days), nil
	}
	if while, err := time.ParseDuration(f.since); err == nil && while >= 0 {
		return now.Add(-while), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if then, err := time.ParseInLocation(layout, f.since, time.Local); err == nil {
			return then, nil
		}
	}
	return time.Time{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("invalid --since %.40q", f.since), Hint: "write 90m, 12h, 7d, 2026-11-22 or 2026-11-22T14:00:00Z"}
}

// matches reports whether the filter selects a record written at from or later.
func (f *logFilter) matches(r audit.Record, from time.Time) bool {
	any := func(globs []string, text string) bool {
		return len(globs) == 0 || slices.ContainsFunc(globs, func(g string) bool { return matchGlob(g, text) })
	}
	same := func(want, has string) bool { return want == "" || want == has }
	return !r.Time.Before(from) && same(f.execution, r.Execution) && same(f.principal, r.Principal) && same(f.decision, r.Decision) &&
		any(f.tools, r.Tool) && any(f.kinds, string(r.Kind))
}

// logOptions holds the flags of log.
type logOptions struct {
	logFilter
	clusterFilter
	limit        int
	asJSON, tail bool
}

// LogCommand returns the verb.
func LogCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var l logOptions
	cmd := &cobra.Command{
		Use:   "log [COMMAND] [flags]",
		Short: "show the audit record",
		Long: `Log shows the audit record: programs and their calls with decisions and outcomes,
approvals, logins, changes of settings and definitions. It reads the files in the data
directory, also while a gateway runs. They have no arguments, results or secrets.`,
		Example: `  sallyport log --since 1h --decision deny
  sallyport log --execution e-2f6qdmnhx3k4c
  sallyport log --follow --tool "github.*" --json
  sallyport log --cluster --since 1h
  sallyport log verify`,
		Args: cli.UnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if l.limit < 0 {
				return cli.Misuse(cmd, "--limit cannot be negative")
			}
			if l.tail && l.isSet() {
				return cli.Misuse(cmd, "--follow shows the record of the data directory, without --cluster and --gateway")
			}
			return a.showLog(cmd.Context(), l)
		},
	}
	l.logFilter.flags(cmd)
	l.clusterFilter.flags(cmd)
	cmd.Flags().IntVar(&l.limit, "limit", 100, "show the last `N`, 0 for all")
	cmd.Flags().BoolVarP(&l.tail, "follow", "f", false, "then show each as it comes, until interrupted")
	cli.JSONLinesFlag(cmd, &l.asJSON)
	cmd.AddCommand(logVerifyCommand(a), logHeadCommand(a), logExportCommand(a), logSinksCommand(a))
	return cmd
}

func logExportCommand(a *app) *cobra.Command {
	var l logOptions
	cmd := &cobra.Command{
		Use:   "export [flags]",
		Short: "print the record as JSON lines",
		Long: `Export prints the lines of the record unchanged, oldest first. Each has the hash of
the line before it (prev) and its own: the SHA-256 of the line without its last member.
With --cluster or --gateway, a line has the chain, the host and the record.`,
		Example: "  sallyport log export --since 2026-11-01 > november.jsonl",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l.asJSON = true
			return a.showLog(cmd.Context(), l)
		},
	}
	l.logFilter.flags(cmd)
	l.clusterFilter.flags(cmd)
	return cmd
}

// auditDir returns the directory of the audit record, which need not exist.
func (a *app) auditDir() (string, error) {
	dir := a.DataDir()
	if dir == "" {
		return "", &tool.Error{Kind: tool.Invalid, Message: "there is no data directory", Hint: "say which with --data DIR, or set HOME"}
	}
	return audit.Dir(dir), nil
}

// noRecordError is the error of commands that need a record.
func noRecordError(dir string) error {
	return &tool.Error{Kind: tool.NotFound, Message: "no audit record in " + dir, Hint: "name its data directory with --data DIR"}
}

func (a *app) showLog(ctx context.Context, l logOptions) error {
	dir, err := a.auditDir()
	if err == nil {
		err = l.check()
	}
	if err != nil {
		return err
	}
	if l.isSet() {
		return a.showCopies(ctx, l)
	}
	from, err := l.startTime(time.Now())
	if err != nil {
		return err
	}
	first, err := audit.Since(dir, from)
	if errors.Is(err, fs.ErrNotExist) && !l.tail {
		a.Say("no audit record in " + dir + "; --data DIR names another data directory")
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	next, err := a.printLast(ctx, dir, first, from, l)
	if err != nil || !l.tail {
		return err
	}
	err = audit.Follow(ctx, dir, next, func(r audit.Record, damaged error) error { return a.printRecord(recordOrError{r, damaged}, from, l) })
	if ctx.Err() != nil {
		return nil //nolint:nilerr // an interrupt is the normal end
	}
	return err
}

// lastRecords keeps the last limit records.
type lastRecords struct {
	limit   int
	records []recordOrError
}

// recordOrError is a record, or why a line is not a record.
type recordOrError struct {
	audit.Record
	damaged error
}

func (l *lastRecords) add(r recordOrError) {
	if l.records = append(l.records, r); len(l.records) >= 2*l.limit {
		l.records = slices.Clone(l.records[len(l.records)-l.limit:])
	}
}

func (l *lastRecords) all() []recordOrError { return l.records[max(0, len(l.records)-l.limit):] }

// printLast prints the last selected records, and returns the number of the record that follows the log's end.
func (a *app) printLast(ctx context.Context, dir string, first uint64, from time.Time, l logOptions) (next uint64, err error) {
	last := lastRecords{limit: l.limit}
	next = first
	for r, damaged := range audit.Read(dir, first) {
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case damaged == nil:
			next = r.Seq + 1
		case !errors.Is(damaged, audit.ErrDamaged):
			return 0, damaged
		}
		one := recordOrError{r, damaged}
		if l.limit == 0 {
			err = a.printRecord(one, from, l)
		} else if damaged != nil || l.matches(r, from) {
			last.add(one)
		}
		if err != nil {
			return 0, err
		}
	}
	for _, one := range last.all() {
		if err := a.printRecord(one, from, l); err != nil {
			return 0, err
		}
	}
	if len(last.records) == 0 && l.limit > 0 && !l.tail {
		a.Say("no matching records")
	}
	return next, nil
}

// printRecord prints one record, if the filter selects it.
func (a *app) printRecord(r recordOrError, from time.Time, l logOptions) error {
	if r.damaged != nil {
		a.Say(cli.Clean(r.damaged.Error()) + "; see sallyport log verify")
		return nil //nolint:nilerr // a damaged line is reported, and the rest is shown
	}
	if !l.matches(r.Record, from) {
		return nil
	}
	if !l.asJSON {
		return a.Print(logLine(r.Record))
	}
	line := string(r.Line)
	if cli.IsTerminal(a.Stdout) {
		line = cli.EscapeHidden(line)
	}
	_, err := io.WriteString(a.Stdout, line+"\n")
	return err
}

// logLine formats a record as text. It sanitizes the record again, as the file may have been edited.
func logLine(r audit.Record) string {
	parts := []string{
		r.Time.Local().Format(time.DateTime), fmt.Sprintf("%-16s", sanitize.Line(string(r.Kind), 30)),
		fmt.Sprintf("%-14s", cli.Cell(cmp.Or(r.Principal, r.By), 30)), fmt.Sprintf("%-14s", cli.Cell(r.Execution, 30)),
	}
	add := func(format string, value any, there bool) {
		if there {
			parts = append(parts, sanitize.Line(fmt.Sprintf(format, value), 120))
		}
	}
	add("%s", r.Tool, r.Tool != "")
	add("%s", r.Decision, r.Decision != "")
	add("(%s)", r.Rule, r.Rule != "")
	add("%s", r.Outcome, r.Outcome != "")
	add("exit=%d", r.Exit, r.Exit != 0)
	add("%s", (time.Duration(r.Micros) * time.Microsecond).Round(10*time.Microsecond), r.Micros > 0)
	add("%d bytes", r.Bytes, r.Bytes > 0)
	add("~%d tokens saved", r.Saved, r.Saved > 0)
	add("%s", r.Language, r.Language != "" && r.Kind == audit.ExecutionStart)
	add("client=%s", r.Client, r.Client != "" && (r.Kind == audit.ExecutionStart || r.Kind == audit.Login))
	add("from=%s", r.From, r.From != "")
	add("lost=%s", r.Gateway, r.Gateway != "")
	add("approval=%s", r.Approval, r.Approval != "")
	add("by=%s", r.By, r.By != "" && r.Principal != "")
	add("resumes=%s", r.Resumes, r.Resumes != "")
	add("through=%d", r.Through, r.Through > 0)
	add("%.12s", r.After, r.After != "")
	add("%s", r.Note, r.Note != "")
	return strings.Join(parts, "  ")
}
