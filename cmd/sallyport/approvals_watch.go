package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/gateway/approvals"
	"sallyport/gateway/httpapi"
	"sallyport/internal/approval"
)

// watchEvery is how often approvals watch looks for what is new.
const watchEvery = 500 * time.Millisecond

func watchCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "watch [flags]",
		Short: "ask about calls as they come, here in the terminal",
		Long: `Watch shows each call that waits when it comes, and takes the answer with one key:
y this call, e any call of the tool by this program, s in this session, n no,
space later, q or Ctrl-C to end. Keys that were pressed before a question was
shown do not count. Without a terminal it shows what waits and asks nothing.`,
		Example: "  sallyport approvals watch",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.watchApprovals(cmd.Context()) },
	}
}

// watchApprovals runs until ctx ends or somebody presses q.
func (a *app) watchApprovals(ctx context.Context) error {
	w := &watch{app: a, seen: map[string]bool{}}
	if terminal, ok := a.stdin.(*os.File); ok && isTerminal(a.stdin) {
		restore, err := singleKeys(terminal)
		if err != nil {
			return err
		}
		defer restore()
		w.keys = keysOf(terminal)
		a.say("waiting for calls to approve; q ends this")
	}
	for {
		over, err := w.look(ctx)
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
		case <-time.After(watchEvery):
		}
	}
}

// keysOf sends what is pressed. The reader ends with the process: a read of a terminal cannot be called off.
func keysOf(terminal *os.File) <-chan byte {
	keys := make(chan byte)
	go func() {
		for buf := make([]byte, 1); ; {
			if n, err := terminal.Read(buf); n == 0 || err != nil {
				return
			}
			keys <- buf[0]
		}
	}()
	return keys
}

// watch shows each question once.
type watch struct {
	*app
	seen map[string]bool
	keys <-chan byte // nil: nobody is asked
}

// look shows what is new, and asks about it.
func (w *watch) look(ctx context.Context) (over bool, err error) {
	err = w.withGateways(ctx, func(ctx context.Context, c *controls) error {
		list, err := waiting(ctx, c, false)
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

func (w *watch) ask(ctx context.Context, c *controls, one approvals.Approval) (over bool, err error) {
	text := question(one)
	if w.keys != nil {
		text += "\n" + keysFor(one)
	}
	if err := w.print(text); err != nil || w.keys == nil {
		return false, err
	}
	w.forget()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case key := <-w.keys:
			d, known := decisionOf(key)
			switch {
			case key == 'q':
				return true, nil
			case key == ' ':
				return false, nil
			case known:
				return false, w.tell(ctx, c, one, d)
			}
		}
	}
}

// keysFor are the answers that there are.
func keysFor(one approvals.Approval) string {
	switch {
	case one.Single:
		return "go on? y yes, n no, space later"
	case one.Standing:
		return "allow? y this call, e this run, n no, space later"
	}
	return "allow? y this call, e this program, s this session, n no, space later"
}

// forget drops what was pressed before a question was shown.
func (w *watch) forget() {
	for read := time.After(50 * time.Millisecond); ; { // nobody answers so quickly what is not read yet
		select {
		case <-w.keys:
		case <-read:
			return
		}
	}
}

// tell gives the answer. That somebody else was quicker is said and no fault.
func (w *watch) tell(ctx context.Context, c *controls, one approvals.Approval, d httpapi.Decision) error {
	var now approvals.Approval
	if err := answer(ctx, c, one.ID, d, &now); err != nil {
		w.report(err)
		return nil
	}
	return w.print(decided(now, d))
}

// decisionOf is what a key means.
func decisionOf(key byte) (httpapi.Decision, bool) {
	switch key {
	case 'y':
		return httpapi.Decision{Decision: httpapi.Allow, Scope: approval.Once}, true
	case 'e':
		return httpapi.Decision{Decision: httpapi.Allow, Scope: approval.Execution}, true
	case 's':
		return httpapi.Decision{Decision: httpapi.Allow, Scope: approval.Session}, true
	case 'n':
		return httpapi.Decision{Decision: httpapi.Deny}, true
	}
	return httpapi.Decision{}, false
}

// question is all that there is to know of a call that waits.
func question(one approvals.Approval) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s  %s  %s ago\n", cell(one.ID, 40), cell(one.Tool, 100), age(one.Asked))
	by := "program"
	if one.Standing {
		by = "run"
	}
	for _, line := range []struct{ name, text string }{
		{"who", one.Principal}, {by, one.Execution}, {"rule", one.Rule}, {"reason", one.Reason},
	} {
		if line.text != "" {
			fmt.Fprintf(&b, "  %-9s %s\n", line.name, cell(line.text, 300))
		}
	}
	for line := range strings.Lines(one.Arguments) {
		b.WriteString("  | " + strings.TrimRight(line, "\n") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
