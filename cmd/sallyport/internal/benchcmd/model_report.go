package benchcmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"sallyport/bench/agent"
	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/models"
	"sallyport/internal/sanitize"
)

// report reports the result of a run: as JSON on stdout, or as a line on stderr.
func (b *modelBench) report(r modelRun) error {
	if b.JSON {
		return b.app.PrintLine(r)
	}
	what := "right"
	if !r.Right {
		what = "failed, " + r.Why
	}
	n := len(b.tasks) * len(b.modes) * b.Runs
	b.app.Say(fmt.Sprintf("[%d/%d] %s, %s: %s (%s, %s tokens in, %s out, %.1f s)",
		len(b.runs), n, r.Task, r.Mode, what, cli.Count(r.Turns, "turn"), groupDigits(r.Tokens.Input), groupDigits(r.Tokens.Output), r.Seconds))
	return nil
}

// print prints the tables of results.
func (b *modelBench) print() error {
	var out strings.Builder
	first := b.runs[0]
	beside := ""
	if b.Upstreams != "all" {
		beside = ", each with the servers of its task alone"
	}
	model := sanitize.Line(cmp.Or(first.Served, first.Model), 80)
	fmt.Fprintf(&out, "%s at %s, %s of %d%s\n\n", model, first.Endpoint, cli.Count(len(b.runs), "run"), len(b.tasks)*len(b.modes)*b.Runs, beside)
	for _, table := range []func(io.Writer){b.byMode, b.byTask} {
		w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
		table(w)
		if err := w.Flush(); err != nil {
			return err
		}
		out.WriteString("\n")
	}
	b.writeNotes(&out)
	return b.app.Print(out.String())
}

// total sums up several runs.
type total struct {
	runs, right, turns int
	tokens             agent.Usage
	price              float64
	seconds, waited    float64
}

func (t *total) add(r modelRun) {
	t.runs++
	if r.Right {
		t.right++
	}
	t.turns += r.Turns
	t.tokens.Input += r.Tokens.Input
	t.tokens.Cached += r.Tokens.Cached
	t.tokens.Stored += r.Tokens.Stored
	t.tokens.Output += r.Tokens.Output
	t.price += r.Price
	t.seconds += r.Seconds
	t.waited += r.Waited
}

func (b *modelBench) total(which func(modelRun) bool) (t total) {
	for _, r := range b.runs {
		if which(r) {
			t.add(r)
		}
	}
	return t
}

func (b *modelBench) byMode(w io.Writer) {
	priced := b.price != models.Price{}
	header := "MODE\tRIGHT\tTURNS\tINPUT\tCACHED\tSTORED\tOUTPUT\tTIME"
	if priced {
		header += "\tPRICE"
	}
	fmt.Fprintln(w, header)
	for _, mode := range b.modes {
		t := b.total(func(r modelRun) bool { return r.Mode == mode })
		if t.runs == 0 {
			continue
		}
		u := t.tokens
		fmt.Fprintf(w, "%s\t%d/%d\t%d\t%s\t%s\t%s\t%s\t%s", mode, t.right, t.runs, t.turns,
			tokenText(u, u.Input), tokenText(u, u.Cached), tokenText(u, u.Stored), tokenText(u, u.Output), time.Duration(t.seconds*1e9).Round(100*time.Millisecond))
		if priced {
			fmt.Fprintf(w, "\t%.4g", t.price)
		}
		fmt.Fprintln(w)
	}
}

// tokenText formats a count of tokens, "-" if the endpoint does not report usage.
func tokenText(u agent.Usage, n int) string {
	if u == (agent.Usage{}) {
		return "-"
	}
	return groupDigits(n)
}

// byTask writes a line for each task with the tokens, in and out, and the turns in each mode.
func (b *modelBench) byTask(w io.Writer) {
	fmt.Fprint(w, "TASK\tKIND")
	for _, mode := range b.modes {
		fmt.Fprint(w, "\t", strings.ToUpper(string(mode)))
	}
	fmt.Fprintln(w)
	for _, task := range b.tasks {
		cells := []string{task.Name, string(task.Kind)}
		for _, mode := range b.modes {
			cells = append(cells, taskCell(b.total(func(r modelRun) bool { return r.Mode == mode && r.Task == task.Name })))
		}
		if b.total(func(r modelRun) bool { return r.Task == task.Name }).runs > 0 {
			fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
	}
}

func taskCell(t total) string {
	if t.runs == 0 {
		return "-"
	}
	text := fmt.Sprintf("%s, %s", tokenText(t.tokens, t.tokens.Input+t.tokens.Output), cli.Count(t.turns, "turn"))
	switch {
	case t.runs > 1:
		return fmt.Sprintf("%d/%d right: %s", t.right, t.runs, text)
	case t.right == 0:
		return "failed: " + text
	}
	return text
}

// writeNotes writes remarks below the tables.
func (b *modelBench) writeNotes(w io.Writer) {
	b.writeCommonTokens(w)
	whole := b.total(func(modelRun) bool { return true })
	if whole.turns > 0 && whole.tokens == (agent.Usage{}) {
		fmt.Fprintln(w, "The endpoint does not report token usage.")
	}
	if whole.waited > 0 {
		fmt.Fprintf(w, "%.1f s more were spent waiting, for rate limits and retries.\n", whole.waited)
	}
	for _, r := range b.runs {
		if !r.Right {
			fmt.Fprintf(w, "failed: %s, %s: %s\n", r.Task, r.Mode, r.Why)
		}
	}
}

// writeCommonTokens compares the modes by the tasks that were right in all of them, as a wrong answer saves nothing.
func (b *modelBench) writeCommonTokens(w io.Writer) {
	var common []string
	for _, task := range b.tasks {
		t := b.total(func(r modelRun) bool { return r.Task == task.Name })
		if t.runs == t.right && t.runs == len(b.modes)*b.Runs {
			common = append(common, task.Name)
		}
	}
	if len(common) == 0 || len(b.modes) < 2 {
		return
	}
	var parts []string
	for _, mode := range b.modes {
		t := b.total(func(r modelRun) bool { return r.Mode == mode && slices.Contains(common, r.Task) })
		parts = append(parts, fmt.Sprintf("%s %s", mode, tokenText(t.tokens, t.tokens.Input+t.tokens.Output)))
	}
	fmt.Fprintf(w, "Tokens, in and out, of the %s that were right in all modes: %s.\n", cli.Count(len(common), "task"), strings.Join(parts, ", "))
}
