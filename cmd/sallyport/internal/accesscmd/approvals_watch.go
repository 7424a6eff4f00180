package accesscmd

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/approvals"
	"sallyport/gateway/httpapi"
	"sallyport/internal/terminal"
)

// watchInterval is the interval at which approvals watch polls.
const watchInterval = 500 * time.Millisecond

func watchCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "watch [flags]",
		Short: "ask about calls as they come, here in the terminal",
		Long: `Watch shows each call that waits when it comes, and takes the answer with one key:
y this call, e any call of the tool by this program, s in this session, n no,
space later, q or Ctrl-C to end. Keys that were pressed before a question was
shown do not count. Without a terminal it shows what waits and asks nothing.`,
		Example: "  sallyport approvals watch",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.watchApprovals(cmd.Context()) },
	}
}

// watchApprovals runs until ctx ends or the user presses q.
func (a *app) watchApprovals(ctx context.Context) error {
	w := &watch{app: a, seen: map[string]bool{}}
	if tty, ok := a.Stdin.(*os.File); ok && cli.IsTerminal(a.Stdin) {
		restore, err := terminal.SingleKeys(tty)
		if err != nil {
			return err
		}
		defer restore()
		w.keys = terminal.Keys(tty)
		a.Say("waiting for calls to approve; q ends this")
	}
	for {
		over, err := w.poll(ctx)
		if over || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case key := <-w.keys:
			if key == 'q' {
				return nil
			}
		case <-time.After(watchInterval):
		}
	}
}

// watch shows each pending approval once.
type watch struct {
	*app
	seen map[string]bool
	keys <-chan byte // nil without a terminal: it only lists
}

// poll shows new approvals and asks about them. Over reports that the user has quit.
func (w *watch) poll(ctx context.Context) (over bool, err error) {
	err = w.WithGateways(ctx, func(ctx context.Context, c *cli.Gateways) error {
		list, err := cli.PendingApprovals(ctx, c, false)
		if err != nil {
			return err
		}
		for _, one := range list {
			if w.seen[one.ID] || over {
				continue
			}
			w.seen[one.ID] = true
			if over, err = w.ask(ctx, c, one); err != nil {
				return err
			}
		}
		return nil
	})
	return over, err
}

func (w *watch) ask(ctx context.Context, c *cli.Gateways, one approvals.Approval) (over bool, err error) {
	text := cli.DescribeApproval(one)
	if w.keys != nil {
		text += "\n" + keyHelp(one)
	}
	if err := w.Print(text); err != nil || w.keys == nil {
		return false, err
	}
	w.drainKeys()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case key := <-w.keys:
			d, known := cli.DecisionOf(key)
			switch {
			case key == 'q':
				return true, nil
			case key == ' ':
				return false, nil
			case known:
				return false, w.submit(ctx, c, one, d)
			}
		}
	}
}

// keyHelp returns the question with the possible answers.
func keyHelp(one approvals.Approval) string {
	switch {
	case one.Single:
		return "go on? y yes, n no, space later"
	case one.Standing:
		return "allow? y this call, e this run, n no, space later"
	}
	return "allow? y this call, e this program, s this session, n no, space later"
}

// drainKeys drops keys that were pressed before a question was shown.
func (w *watch) drainKeys() {
	for read := time.After(50 * time.Millisecond); ; { // too short for an answer to the new question
		select {
		case <-w.keys:
		case <-read:
			return
		}
	}
}

// submit sends the answer. It reports an error, such as an approval that was already answered, and continues.
func (w *watch) submit(ctx context.Context, c *cli.Gateways, one approvals.Approval, d httpapi.Decision) error {
	var now approvals.Approval
	if err := answer(ctx, c, one.ID, d, &now); err != nil {
		w.Report(err)
		return nil
	}
	return w.Print(decisionText(now, d))
}
