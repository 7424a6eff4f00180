package auditcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/audit"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

func logVerifyCommand(a *app) *cobra.Command {
	var heads []string
	var asJSON bool
	var copies clusterFilter
	cmd := &cobra.Command{
		Use:   "verify [flags]",
		Short: "verify that no audit record was changed or removed",
		Long: `Verify reads all records and follows their hashes, from the first to the head that the
gateway has signed, and compares them with the copy in the records of the data
directory. It names the first record that was edited, removed, moved or inserted.

A user who can write the data directory can also forge a complete new log. A head
that was stored elsewhere (sallyport log head) detects that: pass it with --head.

With --cluster it verifies the copies in the store of all gateways, each by itself, also
of gateways that were lost: hashes, and the head that the gateway signed.

Exit status: 0 if all is intact, 1 if it is not.`,
		Example: `  sallyport log verify
  sallyport log head > /mnt/elsewhere/head && sallyport log verify --head /mnt/elsewhere/head`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case copies.isSet() && len(heads) > 0:
				return cli.Misuse(cmd, "--head is of the record of the data directory: leave out --cluster and --gateway")
			case copies.isSet():
				return a.verifyCopies(cmd.Context(), copies, asJSON)
			}
			return a.verifyLog(cmd.Context(), heads, asJSON)
		},
	}
	copies.flags(cmd)
	cmd.Flags().StringArrayVar(&heads, "head", nil, "a `HEAD` that was stored elsewhere: SEQ:HASH, or a file with one")
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func logHeadCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "head [flags]",
		Short: "print the head of the record, to store it elsewhere",
		Long: `Head prints the number of the last record and its hash. Stored elsewhere, it proves with
log verify --head that no record up to there was changed.`,
		Example: "  sallyport log head\n  sallyport log head --json",
		Args:    cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			dir, err := a.auditDir()
			if err != nil {
				return err
			}
			head, err := audit.HeadOf(dir)
			if errors.Is(err, fs.ErrNotExist) {
				return noRecordError(dir)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(head)
			}
			return a.Print(head.String())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it with its signature, as one JSON object")
	return cmd
}

// parseHeadArg parses a --head argument: a head, or the name of a file with one.
func parseHeadArg(text string) (audit.Head, error) {
	head, err := audit.ParseHead(text)
	if err == nil {
		return head, nil
	}
	data, readErr := os.ReadFile(text)
	if readErr != nil {
		return audit.Head{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("--head %.80q is neither a head nor a file", text), Hint: "give SEQ:HASH as sallyport log head prints it, or a file with it"}
	}
	if head, err = audit.ParseHead(string(data)); err != nil {
		return audit.Head{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%.80s: %v", text, err)}
	}
	return head, nil
}

func (a *app) verifyLog(ctx context.Context, heads []string, asJSON bool) error {
	dir, err := a.auditDir()
	if err != nil {
		return err
	}
	checks := &audit.Checks{}
	for _, text := range heads {
		head, err := parseHeadArg(text)
		if err != nil {
			return err
		}
		checks.Heads = append(checks.Heads, head)
	}
	report, err := a.verify(ctx, dir, checks)
	if err != nil {
		return err
	}
	if report.Count == 0 && report.OK() {
		return noRecordError(dir)
	}
	if asJSON {
		err = a.PrintJSON(report)
	} else {
		err = a.Print(reportText(report))
	}
	if err == nil && !report.OK() {
		return cli.Status(cli.ExitFailed)
	}
	return err
}

// verify verifies the hash chain of the log, and compares the log with its copy in the store.
func (a *app) verify(ctx context.Context, dir string, checks *audit.Checks) (report audit.Report, err error) {
	records, closeRecords, err := a.CopyRecords(ctx)
	if err != nil {
		a.Say("the copy in the records is not compared: " + cli.Clean(err.Error()))
	}
	defer func() { err = errors.Join(err, closeRecords()) }()
	if records != nil {
		checks.Mirror, err = mirrorLines(ctx, dir, records)
		if err != nil {
			return report, err
		}
	}
	return audit.Verify(dir, checks)
}

func mirrorLines(ctx context.Context, dir string, records *store.Store) (iter.Seq2[[]byte, error], error) {
	chain, err := audit.Chain(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	mirror, err := audit.NewMirror(records, chain, 0, 0)
	if err != nil {
		return nil, err
	}
	return mirror.Lines(ctx), nil
}

// reportText formats a report as text.
func reportText(r audit.Report) string {
	var b strings.Builder
	if r.OK() {
		fmt.Fprintf(&b, "ok: records %d to %d are intact", r.First, r.Last)
	} else {
		fmt.Fprintf(&b, "NOT INTACT: of records %d to %d", r.First, r.Last)
	}
	if r.Pruned > 0 {
		fmt.Fprintf(&b, "; those up to %d were pruned", r.Pruned)
	}
	if r.Mirrored > 0 {
		fmt.Fprintf(&b, "; %d compared with the copy", r.Mirrored)
	}
	fmt.Fprintf(&b, "\nhead: %d:%s\n", r.Last, r.Hash)
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "FAIL  %s\n", p)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "note  %s\n", note)
	}
	return b.String()
}

func logSinksCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "sinks [flags]",
		Short:   "show how far records were sent to the sinks",
		Long:    "Sinks shows for each sink that records are sent to (audit.sinks in upstreams.yaml)\nthe last record that it has, and its error if sending fails.",
		Example: "  sallyport log sinks",
		Args:    cli.NoArguments,
		RunE:    func(*cobra.Command, []string) error { return a.showSinks(asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) showSinks(asJSON bool) error {
	dir, err := a.auditDir()
	if err != nil {
		return err
	}
	states, err := audit.States(dir)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(struct {
			Sinks []audit.State `json:"sinks"`
		}{append([]audit.State{}, states...)})
	}
	if len(states) == 0 {
		a.Say("no records were sent to any sink; configure audit.sinks in upstreams.yaml")
		return nil
	}
	head, err := audit.HeadOf(dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SINK\tSTATE\tRECORD\tBEHIND\tSENT\tLOST\tERROR")
	for _, s := range states {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%d\t%s\n", sanitize.Line(s.Name, 30), cli.SinkState(s), s.Seq, max(int64(head.Seq)-int64(s.Seq), 0), sentAt(s), s.Lost, cmp.Or(sanitize.Line(s.Error, 120), "-"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.Print(b.String())
}

func sentAt(s audit.State) string {
	if s.Sent.IsZero() {
		return "never"
	}
	return s.Sent.Local().Format(time.DateTime)
}
