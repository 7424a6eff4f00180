package topcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/httpapi"
	"sallyport/internal/terminal"
	"sallyport/internal/tool"
)

// Command returns the verb.
func Command(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var once, asJSON bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "top [flags]",
		Short: "watch programs and upstreams as they are now",
		Long: `Top shows what the gateways on the data directory are doing, and updates itself: queued,
running and ended programs with their current calls, the state of the upstreams, pending
approvals, and the tokens saved today. Programs can be canceled.

The keys: up and down choose a program, c cancels it, t n o w sort by time, calls,
output and who runs it, u shows upstreams only, ? all keys, q ends it.

Without a terminal, or with --once, it prints the state once.`,
		Example: `  sallyport top
  sallyport top --once
  sallyport top --json | jq '.upstreams[] | select(.reason)'`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 200*time.Millisecond || every > time.Hour {
				return cli.Misuse(cmd, "--every must be 200ms to 1h")
			}
			if asJSON || once {
				return a.topOnce(cmd.Context(), asJSON)
			}
			return a.top(cmd.Context(), every)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "print the state once")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what is known, once, as one JSON object")
	cmd.Flags().DurationVar(&every, "every", time.Second, "look again after `DURATION`")
	return cmd
}

// topOnce prints the current state once, as wide as the terminal if stdout is one.
func (a *app) topOnce(ctx context.Context, asJSON bool) error {
	v, err := (&poller{app: a}).poll(ctx)
	if err != nil {
		return err
	}
	if len(v.Gateways) == 0 {
		return &tool.Error{Kind: tool.Failed, Message: "no gateway runs on " + a.DataDir(), Hint: "start one (sallyport serve), or name its data directory with --data"}
	}
	if asJSON {
		return a.PrintJSON(v)
	}
	p := defaultViewport
	if f, ok := a.Stdout.(*os.File); ok && terminal.IsTerminal(f) {
		width, _ := terminal.Size(f)
		p.width = cmp.Or(width, p.width)
	}
	return a.Print(strings.Join((&screen{app: a}).frame(v, p), "\n"))
}

// screen is the state of the terminal user interface.
type screen struct {
	*app
	terminal *os.File
	colours  bool
	view     topView
	sort     func(x, y httpapi.LiveExecution) int
	// selected is the id of the selected program, asked that of a program with a cancellation to be confirmed.
	selected, confirming string
	// message is the message about the last action.
	message         string
	emptyText       string
	help, upstreams bool
	keys            keyReader
}

// The escape sequences that enter the alternate screen, without cursor and wrapping, and leave it.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// top runs until ctx ends or the user presses q.
func (a *app) top(ctx context.Context, every time.Duration) error {
	out, isFile := a.Stdout.(*os.File)
	in, hasKeys := a.Stdin.(*os.File)
	if term, _ := a.Env("TERM"); !isFile || !terminal.IsTerminal(out) || term == "dumb" || a.DataDir() == "" {
		return a.topOnce(ctx, false)
	}
	s := &screen{app: a, terminal: out, emptyText: "no gateway runs on " + displayDir(a.DataDir()) + "; waiting for one"}
	none, _ := a.Env("NO_COLOR")
	s.colours = none == ""
	var pressed <-chan byte
	if hasKeys && terminal.IsTerminal(in) {
		restore, err := terminal.SingleKeysNoSuspend(in)
		if err != nil {
			return err
		}
		defer restore()
		pressed = terminal.Keys(in)
	}
	back, err := terminal.FullScreen(out)
	if err != nil {
		return err
	}
	defer back()
	if _, err := io.WriteString(out, enterScreen); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(out, leaveScreen) }()
	return s.run(ctx, every, pressed)
}

// run polls, draws and reads keys.
func (s *screen) run(ctx context.Context, every time.Duration, pressed <-chan byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	views, now := s.watchGateways(ctx, every)
	resized, stop := terminal.SizeChanges()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case v := <-views:
			s.update(v)
		case <-resized:
		case key := <-pressed:
			switch s.press(ctx, s.keys.feed(key)) {
			case quitAction:
				return nil
			case refreshAction:
				select {
				case now <- struct{}{}:
				default:
				}
			}
		}
		if err := s.draw(); err != nil {
			return err
		}
	}
}

// watchGateways sends a view at each interval until ctx ends. A send to now triggers the next one immediately.
func (s *screen) watchGateways(ctx context.Context, every time.Duration) (views <-chan topView, now chan<- struct{}) {
	out, wake := make(chan topView), make(chan struct{}, 1)
	go func() {
		for t := (&poller{app: s.app}); ctx.Err() == nil; {
			v, err := t.poll(ctx)
			if err != nil {
				v = topView{At: time.Now()}
			}
			select {
			case out <- v:
			case <-ctx.Done():
				return
			}
			select {
			case <-time.After(every):
			case <-wake:
				t.lastSlow = time.Time{}
			case <-ctx.Done():
			}
		}
	}()
	return out, wake
}

// update sets the view. The selection is kept as long as its program runs.
func (s *screen) update(v topView) {
	if len(s.view.Gateways) > 0 && len(v.Gateways) == 0 {
		s.emptyText = "the gateway has ended; waiting for another on " + displayDir(s.DataDir())
	}
	s.view = v
	if !slices.ContainsFunc(v.Executions, func(e httpapi.LiveExecution) bool { return e.ID == s.selected }) {
		s.selected = ""
	}
}

// draw writes the whole screen with one write, to avoid flicker.
func (s *screen) draw() error {
	var p viewport
	p.width, p.height = terminal.Size(s.terminal)
	p.colours = s.colours
	if p.width <= 0 || p.height <= 0 {
		p.width, p.height = 80, 24
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	lines := s.frame(s.view, p)
	for i := range p.height - 1 {
		if i < len(lines) {
			b.WriteString(lines[i])
		}
		b.WriteString("\x1b[K\r\n")
	}
	b.WriteString(truncate(s.footer(p), p.width) + "\x1b[K")
	_, err := io.WriteString(s.terminal, b.String())
	return err
}

// footer returns the last line: a confirmation, a message, or the keys.
func (s *screen) footer(p viewport) string {
	switch {
	case s.confirming != "":
		return p.paint("cancel "+cli.Cell(s.confirming, 40)+"? y cancels it, any other key does not", yellow)
	case s.message != "":
		return p.paint(cli.OneLine(s.message, 200), bold)
	}
	return p.paint("q ends  ? keys  up/down choose  c cancel  u upstreams", dim)
}

// What the loop does after a key.
const (
	noAction = iota
	quitAction
	refreshAction
)

// press handles a key and returns what the loop does next.
func (s *screen) press(ctx context.Context, key rune) int {
	if key == 0 {
		return noAction
	}
	if asked := s.confirming; asked != "" {
		s.confirming, s.message = "", "nothing was canceled"
		if key == 'y' {
			s.message = s.cancel(ctx, asked)
		}
		return refreshAction
	}
	s.message = ""
	switch key {
	case 'q':
		return quitAction
	case ' ':
		return refreshAction
	case '?':
		s.help = !s.help
	case 'u':
		s.upstreams, s.help = !s.upstreams, false
	case 'j', keyDown:
		s.choose(1)
	case 'k', keyUp:
		s.choose(-1)
	case 'c':
		s.confirming = s.selected
		if s.selected == "" {
			s.message = "choose a program that runs, with up and down"
		}
	default:
		if by, known := orders()[key]; known {
			s.sort = by
		}
	}
	return noAction
}

// orders returns the sort functions by their keys.
func orders() map[rune]func(x, y httpapi.LiveExecution) int {
	return map[rune]func(x, y httpapi.LiveExecution) int{
		't': func(x, y httpapi.LiveExecution) int { return x.Started.Compare(y.Started) },
		'n': func(x, y httpapi.LiveExecution) int { return cmp.Compare(y.Made, x.Made) },
		'o': func(x, y httpapi.LiveExecution) int { return cmp.Compare(y.Bytes, x.Bytes) },
		'w': func(x, y httpapi.LiveExecution) int { return cmp.Compare(x.Principal, y.Principal) },
	}
}

// sortedExecutions returns the programs in the selected order.
func (s *screen) sortedExecutions(list []httpapi.LiveExecution) []httpapi.LiveExecution {
	list = slices.Clone(list)
	if s.sort != nil {
		slices.SortStableFunc(list, s.sort)
	}
	return list
}

// choose moves the selection up or down in the running programs.
func (s *screen) choose(step int) {
	list := s.sortedExecutions(s.view.Executions)
	if len(list) == 0 {
		return
	}
	at := slices.IndexFunc(list, func(e httpapi.LiveExecution) bool { return e.ID == s.selected })
	if at < 0 && step < 0 {
		at = len(list)
	}
	s.selected = list[min(max(at+step, 0), len(list)-1)].ID
}

// cancel cancels a program and returns the message about the result.
func (s *screen) cancel(ctx context.Context, id string) string {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	err := s.WithGateways(ctx, func(ctx context.Context, c *cli.Gateways) error {
		var answer httpapi.Canceling
		return c.Find(ctx, "/executions/"+url.PathEscape(id)+"/cancel", httpapi.Nothing{}, &answer)
	})
	if err != nil {
		return fmt.Sprintf("not canceled: %v", err)
	}
	return "canceled " + id
}

// displayDir returns a path that is safe to show.
func displayDir(dir string) string { return cli.Cell(dir, 200) }

// The keys that a terminal sends as several bytes.
const (
	keyUp rune = iota + 0xE000
	keyDown
)

// keyReader decodes the bytes from a terminal into keys.
type keyReader struct{ buffer []byte }

// feed takes a byte and returns the key that it completes, 0 for none.
func (k *keyReader) feed(b byte) rune {
	k.buffer = append(k.buffer, b)
	switch {
	case len(k.buffer) == 1 && b != '\x1b':
	case len(k.buffer) == 1, len(k.buffer) == 2 && (b == '[' || b == 'O'):
		return 0
	case len(k.buffer) > 2 && (b < 0x40 || b > 0x7e) && len(k.buffer) < 16: // its parameters
		return 0
	case len(k.buffer) == 3 && b == 'A':
		k.buffer = nil
		return keyUp
	case len(k.buffer) == 3 && b == 'B':
		k.buffer = nil
		return keyDown
	case len(k.buffer) > 2: // another key
		k.buffer = nil
		return 0
	}
	k.buffer = nil
	return rune(b)
}
