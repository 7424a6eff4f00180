package upstreamscmd

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/catalog"
	"sallyport/gateway/trust"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

func upstreamsReviewCommand(a *app) *cobra.Command {
	var refresh, asJSON bool
	cmd := &cobra.Command{
		Use:   "review [flags] [UPSTREAM]",
		Short: "show the tools that wait for approval, and why",
		Long: `Review shows each tool that is held back: its definition has changed since it was
first seen, or its text looks like an attack on a model. Programs cannot call it
before it is approved. Rejected ones follow in a line each, with who rejected them,
when and why. Invisible characters are shown as <U+200B>.

It shows the last state that a gateway found; --refresh connects to the upstreams first.`,
		Example: `  sallyport upstreams review
  sallyport upstreams review github --refresh`,
		Args: cli.MaybeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.upstreamsReview(cmd.Context(), strings.Join(args, ""), refresh, asJSON)
		},
	}
	cmd.Flags().BoolVar(&refresh, "refresh", false, "connect to the upstreams first, to see what they list now")
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func upstreamsApproveCommand(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "approve [flags] UPSTREAM[.TOOL]...",
		Short: "let programs call tools that wait for approval",
		Long: `Approve pins the definitions that wait, of one tool or of all of an upstream, in
sallyport.lock. A gateway that is running notices. With @DIGEST behind the name
of a tool, as review prints it, only the definition that you have seen is approved.
A rejected definition is approved only by the name of its tool.`,
		Example: `  sallyport upstreams approve github.create_issue@9f86d081884c
  sallyport upstreams approve github`,
		RunE: func(_ *cobra.Command, names []string) error {
			return a.decide(decision{done: "approved", all: all, event: catalog.ApprovalEvent, apply: (*trust.Store).Approve}, names)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "approve all that waits")
	return cmd
}

func upstreamsRejectCommand(a *app) *cobra.Command {
	var all bool
	var reason string
	cmd := &cobra.Command{
		Use:   "reject [flags] UPSTREAM[.TOOL]...",
		Short: "refuse definitions of tools that wait for approval",
		Long: `Reject records in sallyport.lock that definitions must not be used, of one tool or
all of an upstream that wait. Their tools stay unavailable, and programs that call
them are told the reason. Another definition of the same tool waits for approval
again. With @DIGEST behind the name of a tool, as review prints it, only the
definition that you have seen is rejected. Approve still accepts it later.`,
		Example: `  sallyport upstreams reject github.create_issue@9f86d081884c --reason "asks for keys"
  sallyport upstreams reject github`,
		RunE: func(_ *cobra.Command, names []string) error {
			return a.decide(decision{
				done: "rejected", all: all,
				event: func(id tool.ID, h trust.Held) audit.Event { return catalog.RejectionEvent(id, h, reason) },
				apply: func(b *trust.Store, held ...trust.Held) error { return b.Reject(cli.OperatorName, reason, held...) },
			}, names)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "reject all that waits")
	cmd.Flags().StringVar(&reason, "reason", "", "what programs that call the tool are told, at most 300 characters")
	return cmd
}

// quarantinedJSON is one quarantined definition, as review --json prints it.
type quarantinedJSON struct {
	ID       string          `json:"id"`
	Upstream string          `json:"upstream"`
	Wire     string          `json:"wire"`
	Digest   string          `json:"digest"`
	Reason   string          `json:"reason"`
	Findings []trust.Finding `json:"findings"`
	Old      json.RawMessage `json:"old,omitempty"`
	New      json.RawMessage `json:"new"`
	// Rejected says who rejected it; nil while it waits.
	Rejected *trust.Rejection `json:"rejected,omitempty"`
}

func (a *app) upstreamsReview(ctx context.Context, name string, refresh, asJSON bool) error {
	if refresh {
		if err := a.WithGateway(ctx, gateway.Options{ConnectWait: cli.ConnectTimeout}, func(ctx context.Context, g *gateway.Gateway) error {
			return a.WaitConnected(ctx, g)
		}); err != nil {
			return err
		}
	}
	q, err := a.openQuarantine()
	if err != nil {
		return err
	}
	defer q.close()
	held := q.held
	if name != "" {
		up, err := namedUpstream(q.cfg, name)
		if err != nil {
			return err
		}
		held = slices.DeleteFunc(held, func(h trust.Held) bool { return h.Upstream != up })
	}
	if asJSON {
		return a.printQuarantineJSON(q.cfg, held)
	}
	return a.printQuarantine(q.cfg, held)
}

// quarantine is the lock file next to the settings, or the lock in the store that gateways share, with what it holds.
type quarantine struct {
	*trust.Store
	cfg     *config.Config
	held    []trust.Held
	records *store.Store // nil if there is no shared store
}

// openQuarantine opens the quarantine of the settings. The caller closes it.
func (a *app) openQuarantine() (*quarantine, error) {
	q := &quarantine{}
	if err := a.fillQuarantine(q); err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

func (a *app) fillQuarantine(q *quarantine) (err error) {
	if q.cfg, err = a.Load(); err != nil {
		return err
	}
	if q.cfg.Store.IsRemote() {
		if q.records, err = cli.ConnectStore(q.cfg, a.Logger(slog.LevelError)); err != nil {
			return err
		}
	}
	if q.Store, err = trust.OpenForConfig(q.cfg, a.CacheDir(), q.records, a.Logger(slog.LevelError)); err != nil {
		return &cli.ConfigError{Err: err}
	}
	q.held, err = q.Held()
	return err
}

func (q *quarantine) close() {
	if q.Store != nil {
		q.Close()
	}
	if q.records != nil {
		_ = q.records.Close()
	}
}

func (a *app) printQuarantineJSON(cfg *config.Config, held []trust.Held) error {
	list := struct {
		Held     []quarantinedJSON `json:"held"`
		Rejected []quarantinedJSON `json:"rejected"`
	}{[]quarantinedJSON{}, []quarantinedJSON{}}
	for _, h := range held {
		one := quarantinedJSON{
			ID: h.ID(cfg).String(), Upstream: h.Upstream, Wire: h.Name, Digest: h.Digest, Reason: h.Reason,
			Findings: append([]trust.Finding{}, h.Findings...), Old: h.Old, New: h.New,
		}
		if h.IsRejected() {
			one.Rejected = &h.Rejection
			list.Rejected = append(list.Rejected, one)
		} else {
			list.Held = append(list.Held, one)
		}
	}
	return a.PrintJSON(list)
}

func (a *app) printQuarantine(cfg *config.Config, held []trust.Held) error {
	var b, rejected strings.Builder
	for _, h := range held {
		id := h.ID(cfg).String()
		if r := h.Rejection; h.IsRejected() {
			text := strings.TrimSuffix(fmt.Sprintf("rejected by %s on %s: %s", r.By, r.At.Format(time.DateOnly), r.Reason), ": ")
			fmt.Fprintf(&rejected, "%s@%s: %s\n", id, h.Digest[:12], text)
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", id, h.Why())
		for _, f := range h.Findings {
			fmt.Fprintf(&b, "  %s, in %s: %s\n", f.Rule, trust.Visible(f.Where), f.Text)
		}
		b.WriteString("\n")
		for line := range strings.Lines(h.Diff()) {
			b.WriteString("  " + line)
		}
		fmt.Fprintf(&b, "\n  to accept it: sallyport upstreams approve %s@%s\n", id, h.Digest[:12])
		fmt.Fprintf(&b, "  to reject it: sallyport upstreams reject %s@%s\n\n", id, h.Digest[:12])
	}
	if b.Len() == 0 {
		a.Say("no tool waits for approval")
	}
	if b.WriteString(rejected.String()); b.Len() == 0 {
		return nil
	}
	return a.Print(b.String())
}

// namedUpstream returns the name of an upstream in the settings, by its name or id.
func namedUpstream(cfg *config.Config, name string) (string, error) {
	var names []string
	for _, u := range cfg.Upstreams {
		if u.Name == name || u.ID == name {
			return u.Name, nil
		}
		names = append(names, u.Name)
	}
	hint := "see them with: sallyport upstreams list"
	if meant := suggest.Of(name, names); meant != "" {
		hint = "did you mean " + meant + "?"
	}
	return "", &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("there is no upstream %.80q", name), Hint: hint}
}

// decision is what approve or reject does with the definitions that the command line selects.
type decision struct {
	done  string // in the output
	all   bool   // all that wait, and no names
	event func(id tool.ID, h trust.Held) audit.Event
	apply func(b *trust.Store, held ...trust.Held) error
}

func (a *app) decide(d decision, names []string) error {
	if d.all == (len(names) > 0) {
		return &tool.Error{Kind: tool.Invalid, Message: "give names of upstreams or tools, or --all", Hint: "list them: sallyport upstreams review"}
	}
	q, err := a.openQuarantine()
	if err != nil {
		return err
	}
	defer q.close()
	cfg := q.cfg
	chosen := slices.DeleteFunc(slices.Clone(q.held), trust.Held.IsRejected)
	if len(names) > 0 {
		if chosen, err = selectQuarantined(cfg, q.held, names); err != nil {
			return err
		}
	}
	if len(chosen) == 0 {
		a.Say("no tool waits for approval")
		return nil
	}
	var events []audit.Event
	var b strings.Builder
	for _, h := range chosen {
		events = append(events, d.event(h.ID(cfg), h))
		fmt.Fprintf(&b, "%s %s@%s\n", d.done, h.ID(cfg).String(), h.Digest[:12])
	}
	if err := a.RecordEvents(events...); err != nil {
		return err
	}
	if err := d.apply(q.Store, chosen...); err != nil {
		return err
	}
	return a.Print(b.String())
}

// withDigest matches NAME@DIGEST on the command line.
var withDigest = regexp.MustCompile(`^(.+)@([0-9a-f]{6,32})$`)

// selectQuarantined returns the quarantined definitions that names on the command line select: the name of an upstream those that
// wait, that of a tool also a rejected one. A name that selects none is an error.
func selectQuarantined(cfg *config.Config, held []trust.Held, names []string) ([]trust.Held, error) {
	var chosen []trust.Held
	for _, name := range names {
		digest, full := "", name
		if parts := withDigest.FindStringSubmatch(name); parts != nil {
			full, digest = parts[1], parts[2]
		}
		upstream, toolName, one := strings.Cut(full, ".")
		if digest != "" && !one {
			return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%.80q names no tool for its digest", name), Hint: "write UPSTREAM.TOOL@DIGEST"}
		}
		up, err := namedUpstream(cfg, upstream)
		if err != nil {
			return nil, err
		}
		found := slices.DeleteFunc(slices.Clone(held), func(h trust.Held) bool {
			named := one && (h.Name == toolName || h.Tool.ID.Name == toolName)
			return h.Upstream != up || !named && (one || h.IsRejected())
		})
		switch {
		case len(found) == 0:
			return nil, &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("nothing of %.80q waits for approval", full), Hint: "list them: sallyport upstreams review"}
		case digest != "" && !strings.HasPrefix(found[0].Digest, digest):
			return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("the definition of %.80q that waits is %.12s, not the one that you saw", full, found[0].Digest),
				Hint: "look at it again: sallyport upstreams review " + up}
		}
		chosen = append(chosen, found...)
	}
	return chosen, nil
}
