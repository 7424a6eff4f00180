package auditcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/audit"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// clusterFilter selects the logs of the gateways that share a store. Its zero value selects the log in the data directory.
type clusterFilter struct {
	all     bool
	gateway string
}

func (f *clusterFilter) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.all, "cluster", false, "of all gateways of the store (store: in upstreams.yaml), by time")
	cmd.Flags().StringVar(&f.gateway, "gateway", "", "of the gateway `NAME` of the store: its chain, the beginning of that,\nits machine or its id")
}

// isSet reports whether copies in the store are selected.
func (f *clusterFilter) isSet() bool { return f.all || f.gateway != "" }

// withCopies calls do with the selected chains in the store.
func (a *app) withCopies(ctx context.Context, f clusterFilter, do func(in *store.Store, chains []audit.Copied) error) (err error) {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	if !cfg.Store.IsRemote() {
		return &tool.Error{Kind: tool.Invalid, Message: "there is no cluster: upstreams.yaml has no store with a url", Hint: "leave out --cluster and --gateway, or see docs/how-to/share-a-store.md"}
	}
	records, err := cli.ConnectStore(cfg, a.Logger(slog.LevelError))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	all, err := audit.Copies(ctx, records, cfg.Audit.Keep)
	if err != nil {
		return &tool.Error{Kind: tool.Busy, Message: "the audit records of the store cannot be read: " + err.Error(), Err: err}
	}
	chains, err := audit.Choose(all, cmp.Or(f.gateway, audit.AllGateways))
	if err != nil {
		return err
	}
	return do(records, chains)
}

// showCopies prints the last selected records of several gateways by time.
func (a *app) showCopies(ctx context.Context, l logOptions) error {
	from, err := l.startTime(time.Now())
	if err != nil {
		return err
	}
	return a.withCopies(ctx, l.clusterFilter, func(in *store.Store, chains []audit.Copied) error {
		var last []audit.CopiedRecord
		for r, err := range audit.ReadCopies(ctx, in, chains) {
			switch {
			case errors.Is(err, audit.ErrDamaged):
				a.Say(cli.Clean(err.Error()) + "; see sallyport log verify --cluster")
				continue
			case err != nil:
				return err
			case !l.matches(r.Record, from):
				continue
			case l.limit == 0:
				if err := a.printCopied(r, l.asJSON); err != nil {
					return err
				}
				continue
			}
			if last = append(last, r); len(last) >= 2*l.limit {
				last = slices.Clone(last[len(last)-l.limit:])
			}
		}
		for _, r := range last[max(0, len(last)-l.limit):] {
			if err := a.printCopied(r, l.asJSON); err != nil {
				return err
			}
		}
		return nil
	})
}

// printCopied prints a record with the name of its chain. In JSON its line stays as it is, so that its hash can be checked.
func (a *app) printCopied(r audit.CopiedRecord, asJSON bool) error {
	if !asJSON {
		return a.Print(fmt.Sprintf("%-25s", cli.Cell(r.Of.Chain[:min(len(r.Of.Chain), 8)]+" "+r.Of.Host, 40)) + "  " + logLine(r.Record))
	}
	host, err := json.Marshal(r.Of.Host)
	if err != nil {
		return err
	}
	line := fmt.Sprintf(`{"chain":%q,"host":%s,"record":%s}`, r.Of.Chain, host, r.Line)
	if cli.IsTerminal(a.Stdout) {
		line = cli.EscapeHidden(line)
	}
	_, err = io.WriteString(a.Stdout, line+"\n")
	return err
}

// verifyCopies verifies each selected chain of the store by itself.
func (a *app) verifyCopies(ctx context.Context, f clusterFilter, asJSON bool) error {
	var all []audit.Verified
	err := a.withCopies(ctx, f, func(in *store.Store, chains []audit.Copied) (err error) {
		all, err = audit.VerifyCopies(ctx, in, chains)
		return err
	})
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		return &tool.Error{Kind: tool.NotFound, Message: "no gateway has audit records in the store"}
	case asJSON:
		err = a.PrintJSON(struct {
			Chains []audit.Verified `json:"chains"`
		}{all})
	default:
		var b strings.Builder
		for _, one := range all {
			fmt.Fprintf(&b, "chain %s\n%s\n", one.Copied, reportText(one.Report))
		}
		err = a.Print(strings.TrimSuffix(b.String(), "\n"))
	}
	if err == nil && slices.ContainsFunc(all, func(v audit.Verified) bool { return !v.Whole }) {
		return cli.Status(cli.ExitFailed)
	}
	return err
}
